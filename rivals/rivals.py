"""Video calls of rivals over the same paths of the lab: `make rivals` (docs/rivals.md).

Each call is kept in target/rivals/kept and not made again; one that does not count (a late lab, a slow encoder) is made again with the same seed.
Calls of the document are in rivals/calls.json, and are kept from the start.
"""

import argparse
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import call
import camera
import table

HERE = Path(__file__).parent
# Calls of the document's tables: a sitting on another machine goes on from them.
DOCUMENTED = HERE / "calls.json"
PATHS = ["loss-0", "loss-2", "loss-5", "bursts", "wifi", "step", "hand-off", "fq-codel", "red-ecn"]
# Marks around the tables in the document.
BEGIN, END = "<!-- From here on made by `make rivals ARGS=\"--table --document\"`. -->\n", "<!-- Up to here. -->\n"
CONTENDERS = ["googcc", "scream", "lastmile", "tfrc"]


def options():
    reader = argparse.ArgumentParser(prog="make rivals ARGS=...", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    reader.add_argument("--paths", type=names, default=PATHS, help=f"names of rivals/paths, with commas [default: {','.join(PATHS)}]")
    reader.add_argument("--contenders", type=names, default=CONTENDERS,
                        help=f"googcc, scream, or any of `lastmile controllers`, with classifiers or not [default: {','.join(CONTENDERS)}]")
    reader.add_argument("--seeds", type=seeds, default=[1, 2, 3, 4, 5], help="such as 1-5 or 2,7 [default: 1-5]")
    reader.add_argument("--seconds", type=int, default=40, help="of media in a call [default: 40]")
    reader.add_argument("--tries", type=int, default=3, help="in this sitting of a call that does not count [default: 3]")
    reader.add_argument("--again", action="store_true", help="make calls anew that are kept")
    reader.add_argument("--table", action="store_true", help="make no call: write the tables of those that are kept")
    reader.add_argument("--document", action="store_true", help="file the tables in docs/rivals.md too")
    reader.add_argument("--keep-files", action="store_true", help="keep all files of a call, not only its numbers")
    reader.add_argument("--program", default="target/release/lastmile", help="lastmile with the feature `video` [default: %(default)s]")
    reader.add_argument("--folder", type=Path, default=Path("target/rivals"), help="[default: %(default)s]")
    args = reader.parse_args()
    args.tries = max(1, args.tries)
    return args


def seeds(text):
    parts = [part.split("-") for part in text.split(",")]
    return [seed for part in parts for seed in range(int(part[0]), int(part[-1]) + 1)]


def commit():
    """The commit that is measured; with a + where the tree differs from it."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True).stdout.strip()
    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--", "../crates", "../Cargo.lock") else "")


def make(args, case, kept, version):
    """Makes a call until it counts or has had this sitting's tries; keeps the best try, or what went wrong."""
    path, contender, seed = case
    best = json.loads(kept.read_text()) if kept.exists() and not args.again else None
    tries = 0
    while tries < args.tries and (best is None or best["why"]):
        tries += 1
        folder = args.folder / "calls" / f"{path}_{contender}_{seed}_{tries}"
        shutil.rmtree(folder, ignore_errors=True)
        file = HERE / "paths" / f"{path}.toml"
        ended, starved = call.run(args.program, contender, file, seed, args.seconds, folder, (args.folder / "camera.y4m").resolve())
        try:
            found = call.summary(contender, file, args.seconds, folder, starved)
        except (OSError, ValueError, KeyError, IndexError, TypeError, StopIteration) as error:
            found = {"why": [f"no result: {type(error).__name__}: {error}"], "late": 0, "packets": 0}
        if not ended:
            found["why"].append("did not end")
        found.update(path=path, contender=contender, seed=seed, seconds=args.seconds, commit=version)
        print(line(found, tries), flush=True)
        found["tries"] = 1 + (best["tries"] if best else 0)
        if best is None or badness(found) < badness(best):
            best = found
        best["tries"] = found["tries"]
        if not args.keep_files and not any("no result" in why for why in found["why"]):
            shutil.rmtree(folder)
    write_whole(kept, best)


def badness(found):
    return (any("no result" in why for why in found["why"]), len(found["why"]), found["late"])


def line(found, tries):
    numbers = ", ".join(f"{heading} {found[key]:.{digits}f}" for key, heading, digits in table.COLUMNS if found.get(key) is not None)
    late = f"late {found['late']} of {found['packets']}, stolen {100 * found.get('stolen', 0):.1f} %, starved {100 * found.get('starved', 0):.2f} %"
    why = "; does not count: " + ", ".join(found["why"]) if found["why"] else ""
    return f"{found['path']} {found['contender']} seed {found['seed']}, try {tries}: {numbers}; {late}{why}"


def write(args):
    calls = [json.loads(file.read_text()) for file in sorted((args.folder / "kept").glob(f"{args.seconds}s/*/*/*.json"))]
    if not calls:
        print("no calls are kept")
        return
    contenders = [*CONTENDERS, *sorted({found["contender"] for found in calls} - set(CONTENDERS))]
    paths = [*PATHS, *sorted({found["path"] for found in calls} - set(PATHS))]
    ours = sorted({found["commit"] for found in calls if found["contender"] not in call.BROWSERS})
    browsers = sorted({found["version"] for found in calls if "version" in found})
    head = f"Calls of {args.seconds} s, judged from {call.SETTLING} s on; ours of commit {', '.join(ours) or '-'}; {', '.join(browsers) or 'no browser'}. Means with 95 % intervals over n seeds."
    text = "\n".join([head, "", table.markdown(calls, paths, contenders), "", *table.bars(calls, paths), ""])
    bad = [line(found, found["tries"]) for found in calls if found["why"]]
    if bad:
        text += "\nCalls that do not count after all their tries:\n\n" + "\n".join(f"- {one}" for one in bad) + "\n"
    (args.folder / "table.md").write_text(text)
    if args.document:
        page = HERE.parent / "docs" / "rivals.md"
        before, _, after = page.read_text().partition(BEGIN)
        page.write_text(before + BEGIN + "\n" + text + END + after.partition(END)[2])
        DOCUMENTED.write_text("[\n" + ",\n".join(map(json.dumps, calls)) + "\n]\n")
    (args.folder / "calls.json").write_text(json.dumps(calls, indent=1) + "\n")
    keys = sorted({key for found in calls for key in found})
    with open(args.folder / "calls.csv", "w", newline="") as out:
        rows = csv.DictWriter(out, ["path", "contender", "seed", *(key for key in keys if key not in ("path", "contender", "seed"))])
        rows.writeheader()
        rows.writerows(calls)
    print(text)


def main():
    args = options()
    # Of a shell's background job too, where SIGINT is off.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    for path in args.paths:
        if not (HERE / "paths" / f"{path}.toml").exists():
            sys.exit(f"rivals: no path {path} in rivals/paths")
    args.folder.mkdir(parents=True, exist_ok=True)
    if not (args.folder / "camera.y4m").exists():
        camera.write(args.folder / "camera.part")
        os.replace(args.folder / "camera.part", args.folder / "camera.y4m")
    version = commit()
    # Seeds outermost: a sitting that is ended early has all rows.
    cases = [] if args.table else [(path, contender, seed) for seed in args.seeds for path in args.paths for contender in args.contenders]
    restore(args.folder, DOCUMENTED, version)
    try:
        sitting(args, cases, version)
    except KeyboardInterrupt:
        print("ended early: what has been measured is kept")
    write(args)


def sitting(args, cases, version):
    for case in cases:
        make(args, case, file_of(args.folder, args.seconds, *case), version)


def file_of(folder, seconds, path, contender, seed):
    return folder / "kept" / f"{seconds}s" / path / contender / f"{seed}.json"


def restore(folder, documented, version):
    """Keeps the document's calls, where there are none of their cases: those of browsers, and of ours if they are of this commit."""
    for found in json.loads(documented.read_text()) if documented.exists() else []:
        if found["contender"] not in call.BROWSERS and found["commit"] != version:
            continue
        kept = file_of(folder, *(found[key] for key in ("seconds", "path", "contender", "seed")))
        if not kept.exists():
            write_whole(kept, found)


def write_whole(file, found):
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1) + "\n")
    os.replace(part, file)


if __name__ == "__main__":
    main()
