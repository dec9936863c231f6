#!/usr/bin/env bash
# Makes sure that what a build needs is there. Says nothing if it is.
set -euo pipefail

# The oldest Rust that the workspace builds with (rust-version in Cargo.toml).
MINOR=89

fail() {
    echo "setup: $*" >&2
    exit 1
}

command -v cargo >/dev/null || fail "Rust is missing: install it with rustup, then run this again"
version=$(rustc --version)
[[ $version =~ ^rustc\ 1\.([0-9]+)\. ]] || fail "cannot tell the version of Rust from '$version'"
((BASH_REMATCH[1] >= MINOR)) || fail "$version is too old: Rust 1.$MINOR or later is needed (rustup update)"

if ! command -v cc >/dev/null || ! command -v c++ >/dev/null; then
    command -v apt-get >/dev/null || fail "a C and C++ compiler is missing: install one, then run this again"
    as_root=()
    if ((EUID != 0)); then
        command -v sudo >/dev/null || fail "a C and C++ compiler is missing: as root, apt-get install build-essential"
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq build-essential
fi

for component in rustfmt clippy; do
    if ! "cargo-${component/rustfmt/fmt}" --version >/dev/null 2>&1; then
        command -v rustup >/dev/null || fail "$component is missing: install it with your Rust packages"
        rustup component add "$component"
    fi
done
