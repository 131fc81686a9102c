#!/usr/bin/env bash
# Runs one machine's part of a plan, several jobs at a time: bash part.sh plan.json results 2/3
# After an interruption, run it again; it makes the missing calls. Exit code 4: some calls were not made.
set -euo pipefail
plan=$1 results=$2 part=$3

jobs=$(python3 - "$plan" "$part" <<'PY'
import json, re, subprocess, sys

plan = json.load(open(sys.argv[1]))
part = re.fullmatch(r"(\d+)/(\d+)", sys.argv[2])
if not part or not 1 <= int(part[1]) <= int(part[2]):
    sys.exit(f"part {sys.argv[2]} is not I/N with 1 <= I <= N, such as 2/3")
head = subprocess.getoutput("git rev-parse HEAD")
if re.fullmatch("[0-9a-f]{40,64}", head) and plan["head"] not in (None, head):
    sys.exit(f"the plan is of commit {plan['head']}, and {head} is checked out: git checkout {plan['head']}")
jobs = plan["jobs"][int(part[1]) - 1 :: int(part[2])]
if not jobs:
    print(f"no job for part {sys.argv[2]}: the plan has {len(plan['jobs'])}", file=sys.stderr)
for job in jobs:
    print(job["id"], *job["runs"])
PY
)

evaluate() { # JOB RUN...
  local folder=$results/$1 code=0
  shift
  for run in "$@"; do
    skill-evaluator evaluate "--plan=$plan" "--planned=$run" "--results=$folder" || code=$?
  done
  return "$code"
}

mkdir -p "$results"
running=()
while read -ra words; do
  if [ ${#words[@]} -eq 0 ]; then continue; fi
  evaluate "${words[@]}" < /dev/null &
  running+=($!)
done <<< "$jobs"
code=0
for id in "${running[@]}"; do wait "$id" || code=$?; done
exit "$code"
