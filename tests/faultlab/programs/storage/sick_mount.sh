#!/bin/bash
# Mounts the sick file system, runs the program on it.
mkdir -p mnt
python faulty_mount.py mnt "$1" "$2" "$3" 2>/dev/null &
helper=$!
shift 3
trap 'fusermount3 -uz mnt; kill $helper 2>/dev/null' EXIT
for _ in $(seq 50); do
    mountpoint -q mnt && break
    sleep 0.1
done
if [ -n "$LOSE" ]; then
    (sleep "$LOSE"; kill -9 $helper) 2>/dev/null &
fi
python -u "$@"
code=$?
exit $code
