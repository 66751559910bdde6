#!/bin/bash
set -eu
export GIT_TERMINAL_PROMPT=0
echo "+ checking out the training code"
git clone --depth 1 "$@" code
cd code
exec python -u train.py
