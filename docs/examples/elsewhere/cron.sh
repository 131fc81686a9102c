#!/usr/bin/env bash
# Evaluates on one host the versions that were pushed since the last call: bash cron.sh CLONE WORK
# crontab: 17 * * * * flock -n /var/lock/evaluator bash /srv/evaluator/cron.sh /srv/prompts /srv/evaluator/work
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
clone=$1 work=$2
cd "$clone"
mkdir -p "$work"
if [ ! -e "$work/plan.json" ]; then # otherwise continue the interrupted plan
  git pull -q --ff-only
  skill-evaluator ci plan --base "$(git rev-parse -q --verify refs/evaluated || echo 0)" --out "$work/plan.json"
fi
bash "$here/part.sh" "$work/plan.json" "$work/results" 1/1 || [ $? -eq 4 ]
skill-evaluator ci collect "$work/results" --plan "$work/plan.json" --out "$work/collected" || [ $? -eq 4 ]
skill-evaluator ci publish "$work/collected" --to "$(git branch --show-current)"
git update-ref refs/evaluated "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["head"])' "$work/plan.json")"
rm -r "$work"
