#!/usr/bin/env bash
# Packs every crate as for publication, and checks that each builds from its package alone.
set -euo pipefail
cd "$(dirname "$0")/.."

# Before 1.90 cargo cannot pack crates that need each other and are not published.
[[ $(cargo --version) =~ ^cargo\ 1\.([0-9]+)\. ]] && ((BASH_REMATCH[1] >= 90)) || {
    echo "package: skipped: it needs cargo 1.90 or later"
    exit 0
}

rm -rf target/package
cargo package --quiet --workspace --exclude lastmile-peers --no-verify --offline --allow-dirty --exclude-lockfile
unpacked=target/package/unpacked
mkdir -p "$unpacked"
for packed in target/package/*.crate; do
    # Packed files all have one old date, by which cargo would take a check of other contents for this one's.
    tar -xzmf "$packed" -C "$unpacked"
done
missing=0
for crate in "$unpacked"/*/; do
    for file in README.md LICENSE-MIT LICENSE-APACHE; do
        [[ -s $crate$file ]] || { echo "$crate has no $file"; missing=1; }
    done
done
((missing == 0))
# As one workspace with this one's profiles, so that clippy's checks of the dependencies are used again.
{
    echo '[workspace]'
    echo 'resolver = "3"'
    echo 'members = ["*"]'
    echo '[patch.crates-io]'
    for crate in "$unpacked"/*/; do
        name=$(basename "$crate")
        echo "${name%-[0-9]*} = { path = \"$name\" }"
    done
    sed -n '/^\[profile/,$p' Cargo.toml
} >"$unpacked/Cargo.toml"
cp Cargo.lock "$unpacked"
cargo check --workspace --all-features --examples --bins --lib --offline --target-dir target --manifest-path "$unpacked/Cargo.toml"
