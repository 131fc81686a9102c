#!/usr/bin/env bash
# One machine's part of a plan, its jobs side by side: bash part.sh plan.json results 2/3
# Run again, it goes on where it stopped. It ends with 4 where calls were left unmade.
set -euo pipefail
plan=$1 results=$2 part=$3

jobs=$(python3 - "$plan" "$part" <<'PY'
import json, re, shlex, subprocess, sys

plan = json.load(open(sys.argv[1]))
part = re.fullmatch(r"(\d+)/(\d+)", sys.argv[2])
if not part or not 1 <= int(part[1]) <= int(part[2]):
    sys.exit(f"part {sys.argv[2]} is not I/N with 1 <= I <= N, such as 2/3")
head = subprocess.getoutput("git rev-parse HEAD")
if re.fullmatch("[0-9a-f]{40,64}", head) and plan["head"] not in (None, head):
    sys.exit(f"the plan is of commit {plan['head']}, and {head} is checked out: git checkout {plan['head']}")
jobs = plan["entries"][int(part[1]) - 1 :: int(part[2])]
if not jobs:
    print(f"no job for part {sys.argv[2]}: the plan has {len(plan['entries'])}", file=sys.stderr)
for job in jobs:
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
  skill-evaluator evaluate "--results=$folder" "$@"
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
