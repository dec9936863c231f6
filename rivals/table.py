"""The table of kept calls, and our controller's bars beside GoogCC."""

import math
from statistics import mean, stdev

# Two-sided 95 % quantiles of Student's t, by the degrees of freedom.
T95 = [math.nan, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09]
# Key of a call, heading, digits behind the point.
COLUMNS = [
    ("received_mbps", "received, Mbit/s", 2),
    ("frame_rate", "frames/s", 1),
    ("freezes", "freezes", 1),
    ("frozen_s", "frozen, s", 2),
    ("frozen_whole_s", "frozen in the whole call, s", 2),
    ("p95_ms", "P95 latency, ms", 0),
    ("queue_ms", "queue, ms", 1),
    ("queue_p95_ms", "P95 queue, ms", 0),
]


def interval(values):
    """Mean, and half of its 95 % interval: NaN of one value."""
    n = len(values)
    return mean(values), (T95[min(n - 1, 20)] if n > 1 else math.nan) * (stdev(values) if n > 1 else math.nan) / math.sqrt(n)


def difference(ours, theirs):
    """Difference of two means, and half of its 95 % interval (Welch)."""
    if len(ours) < 2 or len(theirs) < 2:
        return mean(ours) - mean(theirs), math.nan
    a, b = stdev(ours) ** 2 / len(ours), stdev(theirs) ** 2 / len(theirs)
    freedom = (a + b) ** 2 / (a * a / (len(ours) - 1) + b * b / (len(theirs) - 1)) if a + b else 20
    return mean(ours) - mean(theirs), T95[max(1, min(20, int(freedom)))] * math.sqrt(a + b)


def told(values, digits):
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    middle, half = interval(values)
    return f"{middle:.{digits}f}" + ("" if math.isnan(half) else f" ±{half:.{digits}f}")


def by_case(calls):
    """Calls by (path, contender)."""
    cases = {}
    for call in calls:
        cases.setdefault((call["path"], call["contender"]), []).append(call)
    return cases


def counted(calls):
    return [call for call in calls if not call["why"]]


def markdown(calls, paths, contenders):
    cases = by_case(calls)
    lines = ["| path | contender | n | " + " | ".join(heading for _, heading, _ in COLUMNS) + " | late packets | tries |",
             "|---" * (len(COLUMNS) + 5) + "|"]
    for path in paths:
        for contender in contenders:
            all_ = cases.get((path, contender), [])
            good = counted(all_)
            if not all_:
                continue
            cells = [told([call[key] for call in good], digits) for key, _, digits in COLUMNS]
            n = f"{len(good)}" + (f" of {len(all_)}" if len(good) < len(all_) else "")
            late, packets = sum(call["late"] for call in good), sum(call["packets"] for call in good)
            lines.append(f"| {path} | {contender} | {n} | " + " | ".join(cells) + f" | {late} of {packets} | {sum(call['tries'] for call in all_)} |")
    return "\n".join(lines)


def bars(calls, paths, ours="lastmile", theirs="googcc"):
    """Our bars, each with its numbers: a list of lines."""
    cases = {case: counted(found) for case, found in by_case(calls).items()}
    lines, worse, better, both = [], [], [], []
    for path in paths:
        a, b = cases.get((path, ours), []), cases.get((path, theirs), [])
        if not a or not b:
            continue
        both.append(path)
        signs, words, clear = [], [], False
        for key, unit, digits in (("frozen_s", "s frozen", 2), ("p95_ms", "ms of P95 latency", 0)):
            off, half = difference([call[key] for call in a], [call[key] for call in b])
            sure = not math.isnan(half) and abs(off) > half
            signs.append((off > 0) - (off < 0))
            clear |= sure and off < 0
            words.append(f"{off:+.{digits}f}{'' if math.isnan(half) else f' ±{half:.{digits}f}'} {unit}{'' if sure else ' (not clear)'}")
        if all(sign > 0 for sign in signs):
            worse.append(path)
        if any(sign < 0 for sign in signs):
            better.append((path, clear))
        lines.append(f"- {path}: {', '.join(words)}")
    if not both:
        return [f"No path has calls of both {ours} and {theirs} that count."]
    lines.insert(0, f"{ours} less {theirs}, differences of means with their 95 % intervals (Welch):")
    def verdict(met, text):
        lines.append(f"- {'met' if met else 'NOT met'}: {text}")
    lines += ["", "Bars:"]
    verdict(not worse, f"worse than {theirs} in both frozen seconds and P95 latency in no row: {len(worse)} of {len(both)}{' (' + ', '.join(worse) + ')' if worse else ''}")
    verdict(2 * len(better) >= len(both), f"better in one of them in half of the rows: {len(better)} of {len(both)}, clearly in {sum(clear for _, clear in better)}")
    lossy = [path for path in ("loss-2", "loss-5", "bursts") if path in both]
    if lossy:
        rates = {path: [mean(call["frame_rate"] for call in cases[path, who]) for who in (ours, theirs)] for path in lossy}
        verdict(all(a > b for a, b in rates.values()), "a higher frame rate under wireless loss: " + ", ".join(f"{path} {a:.1f} and {b:.1f}" for path, (a, b) in rates.items()))
    if "loss-0" in both:
        queue = mean(call["queue_ms"] for call in cases["loss-0", ours])
        verdict(queue < 25, f"a mean queue below 25 ms at 0 % of loss: {queue:.1f} ms")
    return lines
