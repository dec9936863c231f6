#!/usr/bin/env python3
"""Runs a command of lastmile in shards on a Dask cluster, and joins them: docs/fleets.md.

    pip install 'dask==2026.8.*' 'distributed==2026.8.*'
    recipes/dask_shards.py --shards 40 -o out.jsonl -- lastmile sweep path --set 'link.0.rate=10 Mbit/s,30 Mbit/s' --seeds 100

The program, the scenario files and the folder of the output must be at the same paths on all machines. Without --scheduler two workers
are started on this machine.
"""

import argparse
import pathlib
import subprocess
import sys

from dask.distributed import Client, LocalCluster, as_completed


def shard(command, number, of, file):
    """Runs one shard; gives its file. A shard that was cut off goes on where it stood."""
    done = subprocess.run(
        [*command, "--shard", f"{number}/{of}", "-o", file, "--threads", "1"], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"shard {number}/{of}: {done.stderr.strip()}")
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scheduler", metavar="ADDRESS", help="Dask's scheduler, such as tcp://host:8786; default: this machine")
    parser.add_argument("--workers", type=int, default=2, help="workers on this machine, without --scheduler; default: 2")
    parser.add_argument("--shards", type=int, required=True, help="shards: some for each core, so that all end at about the same time")
    parser.add_argument("-o", "--output", required=True, help="file of the result; its shards stand beside it")
    parser.add_argument("command", nargs="+", help="behind --: the program and its arguments, without --shard and -o")
    args = parser.parse_args()

    output = pathlib.Path(args.output).absolute()
    files = [f"{output}.shard-{number}" for number in range(1, args.shards + 1)]
    # A shard takes one core: one thread for each worker.
    cluster = args.scheduler or LocalCluster(n_workers=args.workers, threads_per_worker=1, dashboard_address=None)
    with Client(cluster) as client:
        runs = [
            client.submit(shard, args.command, number, args.shards, file, pure=False, retries=1)
            for number, file in enumerate(files, 1)
        ]
        for ended, run in enumerate(as_completed(runs), 1):
            if error := run.exception():
                return f"{error}; the shards that are there are kept"
            print(f"{ended} of {args.shards} shards", file=sys.stderr)
    program = args.command[0]
    merged = subprocess.run([program, "merge", *files, "-o", str(output)])
    if merged.returncode == 0:
        for file in files:
            pathlib.Path(file).unlink()
    return merged.returncode


if __name__ == "__main__":
    sys.exit(main())
