#!/bin/sh
# One shard of a command of lastmile in each task of a Slurm array: docs/fleets.md.
#
#   sbatch --array=1-40 --cpus-per-task=1 recipes/slurm_shards.sh out.jsonl lastmile sweep path --seeds 4000
#   lastmile merge out.jsonl.shard-* -o out.jsonl
#
# The array must begin at 1. A task that Slurm ended early goes on where it stood when it is requeued.
#SBATCH --job-name=lastmile
#SBATCH --requeue
set -eu
output=$1
shift
exec "$@" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" -o "$output.shard-$SLURM_ARRAY_TASK_ID" \
    --threads "${SLURM_CPUS_PER_TASK:-1}"
