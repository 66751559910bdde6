#!/usr/bin/env bash
# What a job script around a Python program looks like.
set -eo pipefail
script=$1
shift
echo "[$(date +%H:%M:%S)] $(hostname): starting ${script%.py}"
export PYTHONFAULTHANDLER=${PYTHONFAULTHANDLER:-}
if [ -n "$TEE" ]; then
    python "$script" "$@" 2>&1 | tee job.log
else
    python "$script" "$@"
fi
echo "[$(date +%H:%M:%S)] finished"
