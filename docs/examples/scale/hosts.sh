#!/usr/bin/env bash
# One part of a plan on each host, in a folder that all of them see: bash hosts.sh plan.json results gpu-1 gpu-2 gpu-3
# A host that was lost is asked again with the same line.
set -euo pipefail
plan=$(realpath "$1") results=$(realpath -m "$2") here=$(realpath "$(dirname "$0")") folder=$PWD
shift 2

part=0
running=()
for host in "$@"; do
  part=$((part + 1))
  ssh "$host" "cd '$folder' && bash '$here/part.sh' '$plan' '$results' $part/$#" &
  running+=($!)
done
code=0
for id in "${running[@]}"; do wait "$id" || code=$?; done
exit "$code"
