#!/usr/bin/env bash
# One machine's part of a plan, its jobs side by side: bash part.sh plan.json results 2/3
# Run again, it goes on where it stopped.
set -euo pipefail
plan=$1 results=$2 part=$3

jobs=$(python3 - "$plan" "$part" <<'PY'
import json, shlex, sys

plan = json.load(open(sys.argv[1]))
index, count = map(int, sys.argv[2].split("/"))
for job in plan["entries"][index - 1 :: count]:
    options = {"model": job["model_id"], "replicates": job["replicates"], "seed": job["seed"], "shard": job["shard"]}
    options |= {"max-cost": job["max_cost_usd"], "scenario": plan["scenario"]}
    words = [f"--{name}={value}" for name, value in options.items() if value is not None]
    if job["baseline"]:
        words += ["--with-baseline", f"--baseline-commit={job['baseline']['commit']}"]
    words += ["--batch"] if job.get("transport") == "batch" else []
    limits = {name: most for name, most in (job["limits"] or {}).items() if most is not None}
    print(shlex.join([job["id"], plan["invocation"], json.dumps(limits), *words, "--", job["skill"]]))
PY
)

ask() { # ID INVOCATION LIMITS OPTIONS...
  local folder=$results/$1 invocation=$2
  export SKILL_EVALUATOR_LIMITS=$3 # what the plan leaves to this job of its provider's limits
  shift 3
  mkdir -p "$folder"
  earlier=$(find "$folder" -path "*/$invocation-*/manifest.json" -printf '%h\n' -quit)
  if [ -n "$earlier" ]; then set -- "--resume=$earlier" "$@"; else set -- "--invocation=$invocation" "$@"; fi
  skill-evaluator evaluate "--results=$folder" "$@" || [ $? -eq 4 ] # 4: incomplete, which collect says
}

mkdir -p "$results"
running=()
while read -r words; do
  if [ -z "$words" ]; then continue; fi
  eval "job=($words)" # quoted by shlex
  ask "${job[@]}" < /dev/null &
  running+=($!)
done <<< "$jobs"
code=0
for id in "${running[@]}"; do wait "$id" || code=$?; done
exit "$code"
