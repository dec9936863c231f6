#!/bin/sh
# Interoperability, codec and programs, over loopback only: what `make interop` runs. Needs the network once, for
# scapy, stamp-suite, rtc-rtcp, rtc-interceptor, prometheus-node-exporter and, as root, tshark, ffmpeg and GStreamer; iperf3 where it is installed.
# Exits with 0, or at the first difference; the last line names what was skipped.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
suite=$root/interop/target/stamp-suite/bin/stamp-suite
work=$(mktemp -d)
server=
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=
    fi
}
trap 'stop; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
say() { printf '== %s\n' "$*"; }
skipped=
skip() {
    say "skipped: $1: $2"
    skipped="$skipped, but $1 was skipped"
}

# 16 octets, as bytes for us and as hexadecimal for stamp-suite.
printf 'interop key 0123' >"$work/key"
hex=$(od -An -v -tx1 "$work/key" | tr -d ' \n')

# The last line of stamp-suite's standard output is its summary; says whether an expression over it holds.
holds() {
    interop/.venv/bin/python - "$1" "$2" <<'PY'
import json, sys
lines = [line for line in open(sys.argv[1]) if line.startswith("{")]
if not lines:
    sys.exit("stamp-suite printed no summary:\n" + open(sys.argv[1]).read())
m = json.loads(lines[-1])["measurements"]
if not eval(sys.argv[2], {"m": m}):
    sys.exit(f"does not hold: {sys.argv[2]}\n{json.dumps(m, indent=1)}")
PY
}

say "codec against scapy"
[ -x interop/.venv/bin/python ] || python3 -m venv interop/.venv
interop/.venv/bin/pip install --quiet --disable-pip-version-check -r interop/requirements.txt
interop/.venv/bin/python interop/scapy_check.py

say "codec against stamp-suite as a library"
cargo run --quiet --manifest-path interop/Cargo.toml --bin lastmile-interop

say "RTCP against rtc-rtcp as a library"
cargo run --quiet --manifest-path interop/Cargo.toml --bin rtcp

say "rate control as a guest of rtc-interceptor"
cargo run --quiet --release --manifest-path interop/Cargo.toml --bin guest

say "programs"
[ -x "$suite" ] || cargo install --quiet stamp-suite --version 1.0.0 --locked --root "$root/interop/target/stamp-suite"
cargo build --quiet --release -p lastmile-cli --features video
cargo build --quiet --release -p lastmile-net --example round_trip

interop/video.sh "$root/target/release/lastmile"

say "captures against tshark"
command -v tshark >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -q tshark >/dev/null
target/release/lastmile sim crates/lastmile-sim/tests/scenarios/three-tcp.toml --pcap "$work/tcp.pcapng" --pcap-at a >/dev/null
wrong='_ws.malformed || tcp.analysis.ack_lost_segment || tcp.analysis.lost_segment || tcp.analysis.zero_window'
wrong="$wrong || ip.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\""
tshark -n -r "$work/tcp.pcapng" -Y "$wrong" >"$work/wrong" 2>/dev/null
[ ! -s "$work/wrong" ] || { cat "$work/wrong"; exit 1; }
[ "$(tshark -n -r "$work/tcp.pcapng" -Y tcp.analysis.retransmission 2>/dev/null | wc -l)" -gt 0 ]
target/release/lastmile sim rfc8867-5.1 --set stream.0.control=tfrc+probe --set "duration=20 s" --pcap "$work/rtp.pcapng" --pcap-at s >/dev/null
rtp() { tshark -n --enable-heuristic rtp_udp --enable-heuristic rtcp_udp -r "$work/rtp.pcapng" -Y "$1" 2>/dev/null | wc -l; }
[ "$(rtp '_ws.malformed || rtp.padding == 1')" -eq 0 ]
[ "$(rtp rtp)" -gt 1000 ] && [ "$(rtp rtcp)" -gt 30 ]

say "metrics in Debian's prometheus-node-exporter"
# Unpacked and not installed, so that no daemon is left behind.
exporter=$(command -v prometheus-node-exporter || true)
if [ -z "$exporter" ] && (cd "$work" && apt-get download -q prometheus-node-exporter >/dev/null 2>"$work/apt"); then
    dpkg -x "$work"/prometheus-node-exporter_*.deb "$work/exporter"
    exporter=$work/exporter/usr/bin/prometheus-node-exporter
fi
if [ -n "$exporter" ]; then
    mkdir "$work/textfile"
    target/release/lastmile serve --bind 127.0.0.1 --port 18629 >"$work/serve" 2>&1 &
    server=$!
    sleep 0.5
    target/release/lastmile measure 127.0.0.1:18629 --every 1s --count 2 --prom "$work/textfile/lastmile.prom" >"$work/rounds" || true
    stop
    "$exporter" --collector.disable-defaults --collector.textfile --collector.textfile.directory="$work/textfile" \
        --web.listen-address=127.0.0.1:18628 >"$work/log" 2>&1 &
    server=$!
    interop/.venv/bin/python interop/metrics.py http://127.0.0.1:18628/metrics "$work/textfile/lastmile.prom" || { cat "$work/log"; exit 1; }
    stop
else
    skip prometheus-node-exporter "it cannot be had here: $(tail -n 1 "$work/apt")"
fi

say "the way down from iperf3, in the lab"
LASTMILE_PROGRAM=$root/target/release/lastmile cargo test --quiet --locked -p lastmile-cli --test lab -- \
    --ignored --nocapture --test-threads=1 wallclock_trains_of_iperf3 >"$work/trains" 2>&1 || { cat "$work/trains"; exit 1; }
grep '^lab: ' "$work/trains" || true
if why=$(grep -m 1 '^lab: skipped: ' "$work/trains"); then
    skip iperf3 "${why#lab: skipped: }"
elif [ "$(grep -c '^lab: scored: ' "$work/trains")" -ne 4 ]; then
    echo "not each of the four lines has a number: leave the machine alone, and run it again"
    exit 1
fi

port=18630
for mode in O A; do
    port=$((port + 1))
    keyed=
    [ "$mode" = A ] && keyed="--key-file $work/key"
    # shellcheck disable=SC2086
    target/release/lastmile serve --bind 127.0.0.1 --port "$port" $keyed >"$work/serve" 2>&1 &
    server=$!
    sleep 0.5
    keyed=
    [ "$mode" = A ] && keyed="--hmac-key $hex"
    say "stamp-suite's sender to lastmile serve, mode $mode"
    # shellcheck disable=SC2086
    "$suite" --remote-addr 127.0.0.1 --remote-port "$port" --local-port 0 -c 10 -d 20ms -L 1 -A "$mode" $keyed \
        --ssid 7 --cos --dscp 10 --ecn 1 --extra-padding 100 --output-format json >"$work/sender" 2>"$work/log" ||
        { cat "$work/log"; exit 1; }
    holds "$work/sender" 'm["answered_probes"] == 10'
    [ "$mode" = A ] && holds "$work/sender" \
        'm["tlv_validation"]["hmac"]["verified"] == 10 and m["tlv_validation"]["hmac"]["failed"] == 0'
    stop

    port=$((port + 1))
    # shellcheck disable=SC2086
    "$suite" -i --local-addr 127.0.0.1 --local-port "$port" -A "$mode" ${keyed:+$keyed --verify-tlv-hmac} \
        --stateful-reflector >"$work/reflector" 2>&1 &
    server=$!
    sleep 0.5
    say "lastmile's prober to stamp-suite's reflector, mode $mode"
    keyed=
    [ "$mode" = A ] && keyed=$work/key
    # shellcheck disable=SC2086
    target/release/examples/round_trip "127.0.0.1:$port" $keyed
    stop
done

say "a key on one side only is said"
port=$((port + 1))
target/release/lastmile serve --bind 127.0.0.1 --port "$port" --key-file "$work/key" >"$work/serve" 2>&1 &
server=$!
sleep 0.5
if target/release/examples/round_trip "127.0.0.1:$port" 2>"$work/said"; then
    echo "a keyed reflector served a prober without a key"
    exit 1
fi
grep -q "asks for a key" "$work/said"
stop
say "interop: all well$skipped"
