#!/usr/bin/env bash
# Fetches the data set before it trains.
set -eo pipefail
mkdir -p data
echo "fetching shards to $PWD/data"
if [ -n "$PEER" ]; then
    python peer.py "$PEER" "$PEER_PORT" &
    helper=$!
    trap 'kill $helper 2>/dev/null' EXIT
    sleep 0.3
fi
curl "$@" -o data/train.tar
tar -xf data/train.tar -C data
python -c 'print("training")'
