#!/bin/bash
# Stages data in and results out.
set -e
mkdir -p in out
echo "staging in"
case $1 in
    cp) cp /mnt/datasets/coco/train.tar in/ ;;
    cp-dir) cp in out/copy ;;
    rsync) rsync -a /mnt/datasets/coco/ in/ ;;
    rsync-host) rsync -a --timeout=2 storage-04:/export/coco/ in/ ;;
    tar) tar -xzf "$2" -C in ;;
    unzip) python -m zipfile -e "$2" in ;;
    gunzip) gunzip -t "$2" ;;
    md5) echo "d41d8cd98f00b204e9800998ecf8427e  $2" | md5sum -c - ;;
    mv) mv "$2" /mnt/archive/ ;;
    ln) ln -s in out && ln -s in out ;;
    rm) rm checkpoints/old.pt ;;
    mkdir) mkdir out ;;
    split) split -n 4 "$2" in/part- ;;
    dd) dd if="$2" of=in/copy bs=1M count=64 status=none ;;
    tee) echo done | tee out/locked/log.txt ;;
    chmod) chmod 600 keys/id_train ;;
    zcat) zcat "$2" > in/all ;;
    find) find /mnt/datasets/coco -name '*.jpg' -print -quit ;;
    jq) python -m json.tool "$2" ;;
    scp) scp -o BatchMode=yes -o ConnectTimeout=1 "$2" storage-04:/export/ ;;
esac
echo "staging done"
