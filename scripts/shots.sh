#!/usr/bin/env bash
# Shots of six pages at 1400, 800 and 390 px and in print, into target/shots, to be looked at. Needs chromium and pdftoppm (Debian:
# chromium, poppler-utils). PROGRAM names another program than the release.
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "${PROGRAM:-target/release/lastmile}")
for tool in chromium pdftoppm; do
    command -v "$tool" >/dev/null || { echo "shots: skipped: $tool is missing"; exit 0; }
done
rm -rf target/shots
mkdir -p target/shots
cd target/shots

"$program" sim rfc8867-5.3 --json >sim.json
"$program" sim path --set 'measure.0.every=1 s' --set 'duration=20 s' --json >estimates.json
"$program" sweep path --set 'link.0.rate=6 Mbit/s,8 Mbit/s,10 Mbit/s,14 Mbit/s,20 Mbit/s' \
    --set 'traffic.cross.rate=1 Mbit/s,2 Mbit/s,4 Mbit/s' --set 'link.0.queue=20 kB,60 kB' --seeds 4 -o sweep.jsonl >/dev/null
for file in sim.json estimates.json sweep.jsonl; do
    "$program" report "$file" >/dev/null
done
"$program" evaluate --scenario rfc8867-5.3 --controllers tfrc,vtp,iiad --runs 3 --report evaluate.html >/dev/null
"$program" reproduce tfrc-probe --item figure-3,figure-4 --runs 2 --report tfrc-probe.html >/dev/null
"$program" reproduce lda --item figure-1,figure-4,figure-5,figure-6 --runs 1 --report lda.html >/dev/null

# A window of a browser has a least width; a frame has not.
shot() {
    local page=$1 width=$2 height=$3
    echo "<!doctype html><body style='margin:0'><iframe src='$page.html' style='border:0;width:${width}px;height:${height}px'></iframe>" >frame.html
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$PWD/profile" \
        --window-size="$((width < 520 ? 520 : width)),$height" --screenshot="$page-$width.png" "file://$PWD/frame.html" >/dev/null 2>&1
}

for page in sim estimates sweep evaluate tfrc-probe lda; do
    shot "$page" 1400 2400
    shot "$page" 800 2400
    shot "$page" 390 2400
    chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --no-pdf-header-footer \
        --print-to-pdf="$page.pdf" "file://$PWD/$page.html" >/dev/null 2>&1
    pdftoppm -r 60 -png -l 3 "$page.pdf" "$page-print"
done
rm -rf profile frame.html
echo "shots: $(find . -name '*.png' | wc -l) in target/shots"
