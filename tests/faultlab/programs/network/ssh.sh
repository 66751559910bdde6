#!/bin/bash
# Starts the workers of a host file one after the other.
set -e
while read -r host; do
    echo "starting worker on $host"
    ssh -n -o BatchMode=yes -o ConnectTimeout=1 "$@" "$host" "cd $PWD && python train.py"
done < hosts
