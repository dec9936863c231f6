#!/usr/bin/env python3
"""Fills the tables of docs/league.md with the numbers of a league: scripts/league.py LEAGUE.csv (`evaluate league --csv`).

The rows and columns are those that the page has; a case or a controller that the file has not is an error. docs/tables/league.csv
gets the numbers of all cases. Prints in how many cases whose capacity moves no rival is better.
"""

import csv
import re
import sys
from pathlib import Path
from statistics import median

PAGE = Path(__file__).parent.parent / "docs" / "league.md"
TABLE = PAGE.parent / "tables" / "league.csv"
OWN = "lastmile"
# The page's words for the file's columns.
NUMBERS = {
    "rate, % of possible": "of_possible",
    "received, kbit/s": "received_kbps",
    "loss, %": "loss",
    "P95 of queueing, ms": "queueing_p95_ms",
    "P95 of frame delay, ms": "frame_p95_ms",
    "slowest over fastest in 5 s, %": "fairness_5s",
    "TCP's kbit/s": "tcp_kbps",
    "TCP's share, %": "tcp_share",
    "the other's share, %": "other_share",
    "to 90 % after a step up, s": "step_up_s",
    "until drained after a step down, s": "step_down_s",
}
# Numbers of the table alone, with their intervals, and places in a case.
MORE = ["queueing_p99_ms", "frame_p99_ms", "frozen", "regret", "regret_queue_ms", "convergence_s", "overshoot", "layer_s", "layer_flaps"]
PLACES = ["pareto", "fair", "dominates", "dominated", "worst_seed", "worst_frame_p95_ms"]


def number(row, column):
    """A mean, with its 95 % interval where that is not nothing."""
    mean, half = float(row[column]), (float(row[f"{column}_high"]) - float(row[f"{column}_low"])) / 2
    rounded = lambda value: f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}"
    return f"{rounded(mean)} ± {rounded(half)}" if half >= 0.05 else rounded(mean)


def standing(rows):
    """Cells of a controller in the standings."""
    count = lambda column, value: sum(row[column] == value for row in rows)
    regret, queue = ([float(row[column]) for row in rows if row[column]] for column in ("regret", "regret_queue_ms"))
    counts = [count("pareto", "true"), count("dominated", "true"), count("dominates", "true"), count("fair", "false")]
    return [*counts, f"{median(regret):.1f} %, {median(queue):.0f} ms", f"{max(regret):.0f} %"]


def filled(page, rows):
    """The page with the numbers of these rows."""
    found = {(row["scenario"], row["controller"]): row for row in rows}
    lines, controllers = [], []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = cells[0].strip("`")
        if cells[:2] == ["case", "number"]:
            controllers = [cell.strip("`") for cell in cells[2:]]
        elif len(cells) > 1 and cells[1] in NUMBERS:
            numbers = [number(found[name, controller], NUMBERS[cells[1]]) for controller in controllers]
            line = "| " + " | ".join([*cells[:2], *numbers]) + " |"
        elif re.fullmatch(r"\| `[a-z]+` \| \d+ \|.* ms \|.*%? \|", line):
            own = [row for row in rows if row["controller"] == name]
            if not own:
                sys.exit(f"league: the file is without {name}, which the page has")
            line = "| " + " | ".join([cells[0], *map(str, standing(own))]) + " |"
        lines.append(line)
    return "\n".join(lines) + "\n"


def slim(rows):
    """The file with the numbers that the page goes by, each with its interval, and the controllers' places."""
    numbers = [f"{column}{end}" for column in [*NUMBERS.values(), *MORE] for end in ("", "_low", "_high")]
    with open(TABLE, "w", newline="") as file:
        table = csv.DictWriter(file, ["suite", "scenario", "controller", *PLACES, *numbers], extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def moves(row):
    """The capacity of the case changes."""
    name = row["scenario"]
    return row["suite"] == "trace" or name in ("rfc8867-5.1", "rfc8867-5.2", "rfc8867-5.3", "hand-off") or (row["suite"], name[:5]) == ("steps", "step-")


def better(rival, own, best):
    """At most 5 points less rate and a lower P95 frame delay, or 2 points more at a P95 of at most twice as much, by the means.

    Where the possible rate is not known, rates are shares of the best one's kbit/s.
    """
    share = lambda row: float(row["of_possible"]) if row["of_possible"] else 100 * float(row["received_kbps"]) / best
    (rate, delay), (our_rate, our_delay) = ((share(row), float(row["frame_p95_ms"])) for row in (rival, own))
    return rate > our_rate - 5 and delay < our_delay or rate > our_rate + 2 and delay <= 2 * our_delay


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    PAGE.write_text(filled(PAGE.read_text(), rows))
    slim(rows)
    own = {row["scenario"]: row for row in rows if row["controller"] == OWN and moves(row)}
    rivals = [row for row in rows if row["scenario"] in own]
    best = {name: max(float(row["received_kbps"]) for row in rivals if row["scenario"] == name) for name in own}
    beaten = {row["scenario"] for row in rivals if row["controller"] != OWN and better(row, own[row["scenario"]], best[row["scenario"]])}
    print(f"capacity that moves: no rival is better in {len(own) - len(beaten)} of {len(own)} cases")
