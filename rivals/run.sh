#!/usr/bin/env bash
# What `make rivals` runs: installs what is missing (Debian, as root), builds lastmile with real video, and makes the calls that are not kept
# yet. Options are those of rivals.py.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "rivals: $*" >&2
    exit 1
}
for option in "$@"; do
    # No call is made: nothing is needed for that but Python.
    case $option in --table | --help | -h) exec python3 rivals/rivals.py "$@" ;; esac
done
((EUID == 0)) || fail "the lab's namespaces need root"
missing=()
for program in node:nodejs npm:npm python3:python3 "${CHROMIUM:-/usr/bin/chromium}:chromium"; do
    command -v "${program%:*}" >/dev/null || missing+=("${program##*:}")
done
if ((${#missing[@]})); then
    command -v apt-get >/dev/null || fail "missing: ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
python3 -c 'import tomllib' 2>/dev/null || fail "Python 3.11 or later is needed"
if [[ ! -d rivals/node_modules/playwright-core || rivals/package-lock.json -nt rivals/node_modules ]]; then
    (cd rivals && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --silent)
    touch rivals/node_modules
fi
cargo build --release --locked --quiet -p lastmile-cli --features video
exec python3 rivals/rivals.py "$@"
