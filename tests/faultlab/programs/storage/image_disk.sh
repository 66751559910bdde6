#!/bin/bash
# A job whose scratch is a disk image of its own; what happens to the disk is the first word.
set -e
how=$1
shift
truncate -s "${SIZE:-2M}" scratch.img
mkfs.ext4 -q -F ${MKFS:-} scratch.img 2>/dev/null
mkdir -p mnt
mount -o loop,errors=continue scratch.img mnt
trap 'umount -l mnt' EXIT
mkdir -p mnt/cache
echo old > mnt/old.npy
echo step > mnt/history.csv
case $how in
    ro) mount -o remount,ro mnt ;;
    garble)
        head -c 600000 /dev/urandom > mnt/shard.bin
        sync
        umount mnt
        python garble.py scratch.img
        mount -o loop,errors=remount-ro scratch.img mnt
        ;;
    cut)
        head -c 900000 /dev/urandom > mnt/shard.bin
        sync
        umount mnt
        mount -o loop,errors=remount-ro scratch.img mnt
        truncate -s 300K scratch.img
        echo 3 > /proc/sys/vm/drop_caches || true
        ;;
    full) head -c 9000000 /dev/zero > mnt/fill 2>/dev/null || true ;;
    plain) ;;
esac
python -u "$@"
