#!/usr/bin/env bash
# Runs the league with as many rivals as can be built here: GoogCC from the package registry, and SCReAM where SCREAM_DIR names a checkout of
# https://github.com/EricssonResearch/scream, which needs a C++ compiler. Arguments go to `evaluate league`.
set -euo pipefail

if [[ -n ${SCREAM_DIR:-} ]]; then
    SCREAM_DIR=$(realpath "$SCREAM_DIR")
    export SCREAM_DIR
else
    unset SCREAM_DIR
    echo "league: without SCReAM: SCREAM_DIR names no checkout of https://github.com/EricssonResearch/scream" >&2
fi
build() {
    cargo build --release --locked -p lastmile-peers "$@"
}
build --features googcc || {
    echo "league: without GoogCC, which could not be built" >&2
    build
}
exec target/release/lastmile-rivals evaluate league --report target/league.html --csv target/league.csv --json -o target/league.json "$@"
