#!/usr/bin/env bash
# Makes target/static/lastmile: a program that needs no library where it runs.
set -euo pipefail
cd "$(dirname "$0")/.."

# With a target named, flags are for the program alone, and not for build-time code (procedural macros cannot be static).
target=$(rustc -vV | sed -n 's/^host: //p')
# getrandom looks for the C library's function at run time. A static program does not find it, and would need /dev/urandom instead.
flags='-C target-feature=+crt-static --cfg getrandom_backend="linux_getrandom"'
RUSTFLAGS=$flags cargo build --profile dist --locked -p lastmile-cli --target "$target"
mkdir -p target/static
cp "target/$target/dist/lastmile" target/static/lastmile
ls -l target/static/lastmile | awk '{ printf "static: target/static/lastmile, %.1f MB\n", $5 / 1e6 }'
