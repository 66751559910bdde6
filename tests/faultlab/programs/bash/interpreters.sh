#!/bin/bash
# Runs the entry point that its caller named.
set -e
chmod +x "$1" 2>/dev/null || true
[ -n "$LOCK" ] && chmod -x "$1"
echo "+ ./$1"
"./$1"
