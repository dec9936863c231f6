#!/usr/bin/env bash
# QUIC of noq-proto over real sockets between two hosts of the lab: 4 Mbit/s, 40 ms there and back, 50 kB of queue, 2 % of random loss. A row for
# each controller: means over the seeds, with their 95 % intervals. As root. scripts/quic.sh [SEEDS] [SECONDS] [CONTROLLER...]
set -euo pipefail
seeds=${1:-5} seconds=${2:-30}
shift $(($# < 2 ? $# : 2))
(($#)) || set -- noq-cubic noq-bbr3 lastmile vtp tfrc

cargo build --locked --quiet -p lastmile-peers --features noq --example quic --bin lastmile-rivals
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/quic.toml" <<'TOML'
name = "quic"
description = "4 Mbit/s, 40 ms there and back, 50 kB of queue, 2 % of random loss"
duration = "60 s"
[host.a]
[host.b]
[[link]]
from = "a"
to = "b"
rate = "4 Mbit/s"
delay = "20 ms"
queue = "50 kB"
losses = [{ name = "air", model = { kind = "bernoulli", rate = 0.02 } }]
back = { losses = [] }
TOML

# A run's Mbit/s that the server read, and kB of mean queue; three tries, since the lab refuses a run with late packets.
run() {
    for _ in 1 2 3; do
        rm -f "$scratch/certificate"
        if target/debug/lastmile-rivals lab "$scratch/quic.toml" --seed "$2" --json \
            --in a -- nice -n -19 target/debug/examples/quic send '{b}:5000' "$scratch/certificate" "$seconds" "$1" \
            --in b -- nice -n -19 target/debug/examples/quic serve 5000 "$scratch/certificate" >"$scratch/json" 2>"$scratch/said"; then
            rate=$(sed -n 's/.*received .*: \([0-9.]*\) Mbit.*/\1/p' "$scratch/said")
            queue=$(sed -n 's/.*"queue_mean_bytes": \([0-9.]*\).*/\1/p' "$scratch/json" | head -1)
            echo "$rate $queue"
            return
        fi
    done
    cat "$scratch/said" >&2
    return 1
}

echo "seeds 1 to $seeds, $seconds s each"
echo "| | Mbit/s | mean queue, kB |"
echo "|---|---|---|"
for name; do
    for ((seed = 1; seed <= seeds; seed++)); do
        run "$name" "$seed"
    done | awk -v name="$name" '
        BEGIN { split("12.71 4.30 3.18 2.78 2.57 2.45 2.36 2.31 2.26", t, " ") }
        { n++; for (k = 1; k <= 2; k++) { sum[k] += $k; square[k] += $k * $k } }
        function told(k, scale,    mean, half) {
            mean = sum[k] / n
            half = n > 1 ? t[n < 10 ? n - 1 : 9] * sqrt((square[k] - n * mean * mean) / (n - 1) / n) : 0
            return sprintf("%.2f ±%.2f", mean / scale, half / scale)
        }
        END { printf "| `%s` | %s | %s |\n", name, told(1, 1), told(2, 1000) }'
done
