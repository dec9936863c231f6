#!/usr/bin/env bash
# Everything that must hold before a change goes in, cheapest first; the last lines are a summary.
set -uo pipefail
cd "$(dirname "$0")/.."

logs=target/test-logs
mkdir -p "$logs"
summary=()
began=$SECONDS
# The steps find there the builds of the steps before them.
export CARGO_TARGET_DIR=$PWD/target
# A first build is not incremental: the notes for later builds would take a fifth of its time.
# (cargo makes the folder in any case.)
[[ -n $(ls -A target/debug/incremental 2>/dev/null) ]] || export CARGO_INCREMENTAL=0

finish() {
    echo
    echo "== summary"
    printf '%s\n' "${summary[@]}"
    echo "$1 in $((SECONDS - began)) s"
}

step() {
    local name=$1 start=$SECONDS
    shift
    echo
    echo "== $name: $*"
    if ! "$@" 2>&1 | tee "$logs/$name.log"; then
        summary+=("$name: FAILED after $((SECONDS - start)) s: $*")
        finish FAILED
        exit 1
    fi
    summary+=("$name: $((SECONDS - start)) s$(counts "$logs/$name.log")")
}

# ", N passed, M ignored" from the lines of the test harness, if there are any.
counts() {
    awk '/^test result:/ { passed += $4; ignored += $8; seen = 1 }
         END { if (seen) printf ", %d passed, %d ignored", passed, ignored }' "$1"
}

step format cargo fmt --all --check
# Modules that a registry declares are named in a macro, where cargo fmt does not look.
step format-registered rustfmt --edition 2024 --check crates/lastmile/src/{estimate,classify,control}/*.rs \
    crates/lastmile/src/*/*/mod.rs \
    crates/lastmile-sim/src/network/queue/*.rs
step clippy cargo clippy --workspace --exclude lastmile-peers --all-targets --all-features --locked -- -D warnings
# Rivals are built by those who have them; without, their crate is a program with our own names.
step peers cargo clippy -p lastmile-peers --all-targets --locked -- -D warnings
step package scripts/package.sh
step docs env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude lastmile-peers --no-deps --all-features --locked
# With the workspace's profiles, so that clippy's checks of the dependencies are used again.
sed -n '/^\[profile/,$p' Cargo.toml >target/profiles.toml
step fuzz-build cargo check --config target/profiles.toml --target-dir target --manifest-path fuzz/Cargo.toml \
    --bins --no-default-features --locked
# Of the examples, which clippy has checked, tests run these.
step examples cargo build --workspace --exclude lastmile-peers --all-features --locked --example yaz --example ledbat --example veno --example aimd --example ready
step lean cargo check -p lastmile-cli --no-default-features --locked
wasm=wasm32-unknown-unknown
if [[ -d $(rustc --print sysroot)/lib/rustlib/$wasm ]]; then
    step wasm cargo build -p lastmile -p lastmile-sim --all-features --locked --target "$wasm" --lib --example ready
    step wasm-study cargo check -p lastmile-study -p lastmile-report --locked --target "$wasm" --lib
    if command -v node >/dev/null; then
        step wasm-runs node scripts/wasm.mjs target/debug/examples/ready "target/$wasm/debug/examples/ready.wasm"
    else
        summary+=("wasm-runs: skipped: Node is not installed here (apt-get install nodejs)")
    fi
else
    summary+=("wasm: skipped: Rust has no target $wasm here (rustup target add $wasm)")
fi
step tests cargo test --workspace --exclude lastmile-peers --all-features --locked --lib --bins --tests
step doctests cargo test --workspace --exclude lastmile-peers --all-features --locked --doc
step conformance target/debug/lastmile conformance
# Tests that meet the wall clock are named wallclock_* and ignored above: they run here alone, one at a time. They print
# "lab: scored: NAME" for a run that counted; "lab: refused: NAME: WHY" for one that was late three times on a machine
# that is on time without it, which speaks against the lab; "lab: unfit: NAME: WHY" for one that never met such a machine
# (its hypervisor or its neighbours took the time), which says nothing; and "lab: skipped: WHY" for a test that cannot run here.
# If more runs were unfit than scored, the last line says that the lab's lateness is unknown.
# The builds' files go to disk first: later writes would delay the tests.
sync
step lab cargo test --workspace --exclude lastmile-peers --all-features --locked --lib --bins --tests -- \
    --ignored --nocapture --test-threads=1 wallclock_
scored=$(grep -c '^lab: scored' "$logs/lab.log")
refused=$(grep -c '^lab: refused' "$logs/lab.log")
unfit=$(grep -c '^lab: unfit' "$logs/lab.log")
skipped=$(grep -c '^lab: skipped' "$logs/lab.log")
summary+=("lab runs: $scored scored, $refused refused, $unfit without a machine fit for it, $skipped skipped")
while read -r reason; do
    summary+=("  $reason")
done < <(grep -E '^lab: (refused|unfit|skipped)' "$logs/lab.log")
summary+=("conformance: $(tail -n 1 "$logs/conformance.log")")
if ((refused * 3 > scored + refused)); then
    finish "FAILED: more than a third of the lab runs was refused"
    exit 1
fi
if ((unfit > scored)); then
    finish "all passed but for the lab, which had no machine to be judged on,"
    exit 0
fi
finish "all passed"
