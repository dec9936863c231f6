#!/usr/bin/env python3
"""Fills the tables of docs/league.md with the numbers of a league: scripts/league.py LEAGUE.csv (`evaluate league --csv`).

The rows and columns are those that the page has; a case or a controller that the file has not is an error.
"""

import csv
import re
import sys
from pathlib import Path
from statistics import median

PAGE = Path(__file__).parent.parent / "docs" / "league.md"
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


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="") as file:
        PAGE.write_text(filled(PAGE.read_text(), list(csv.DictReader(file))))
