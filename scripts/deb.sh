#!/usr/bin/env bash
# Makes target/deb/lastmile.deb: the program, its manual pages and completions.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo deb --version >/dev/null 2>&1; then
    cargo install --locked cargo-deb
fi
cargo build --profile dist --locked -p lastmile-cli
program=target/dist/lastmile
rm -rf target/deb
mkdir -p target/deb
"$program" man --dir target/deb/man
"$program" completions bash >target/deb/lastmile.bash
"$program" completions zsh >target/deb/_lastmile
"$program" completions fish >target/deb/lastmile.fish
cargo deb -p lastmile-cli --profile dist --no-build --no-strip --output target/deb/lastmile.deb
ls -l target/deb/lastmile.deb | awk '{ printf "deb: target/deb/lastmile.deb, %.1f MB\n", $5 / 1e6 }'
