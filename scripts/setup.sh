#!/usr/bin/env bash
# Installs missing needs of a build. Says nothing if none is missing.
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

# apt_install PACKAGE: its questions are answered with their defaults.
apt_install() {
    "${as_root[@]}" apt-get update -qq &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1"
}

as_root=()
if ((EUID != 0)); then
    as_root=(sudo)
fi

# The checks build the feature `video`, which is C++.
if ! command -v cc >/dev/null || ! command -v c++ >/dev/null; then
    command -v apt-get >/dev/null || fail "a C and C++ compiler is missing: install one, then run this again"
    if ((EUID != 0)); then
        command -v sudo >/dev/null || fail "a C and C++ compiler is missing: as root, apt-get install build-essential"
    fi
    apt_install build-essential
fi

# iperf3 checks the lab. Nothing is built with it, so the script asks for no password, and
# a machine that cannot have it does without: the test says so.
if ! command -v iperf3 >/dev/null; then
    as_root=(sudo -n)
    ((EUID != 0)) || as_root=()
    if ! { command -v apt-get && apt_install iperf3; } >/dev/null 2>&1; then
        echo "setup: iperf3 could not be installed: the lab test with it will be skipped (apt-get install iperf3)" >&2
    fi
fi

for component in rustfmt clippy; do
    if ! "cargo-${component/rustfmt/fmt}" --version >/dev/null 2>&1; then
        command -v rustup >/dev/null || fail "$component is missing: install it with your Rust packages"
        rustup component add "$component"
    fi
done

# The core is built for it, to see that none of its dependencies needs an operating system (clippy.toml bans clocks, threads and
# sockets in its own code). A machine that cannot have it does without: the test says so.
wasm=wasm32-unknown-unknown
if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$wasm ]] && ! rustup target add "$wasm" >/dev/null 2>&1; then
    echo "setup: Rust's target $wasm could not be installed: the build for it will be skipped (rustup target add $wasm)" >&2
fi
