#!/usr/bin/env bash
# The job's steps lie in files of their own.
set -eo pipefail
for step in steps/*.sh; do
    echo "--- $(basename "$step")"
    bash "$step"
done
python train.py
