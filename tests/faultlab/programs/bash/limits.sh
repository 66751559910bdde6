#!/bin/bash
# Sets the limits that the job is to live in.
how=$1
shift
case $how in
    files) ulimit -n 24 ;;
    cpu) ulimit -t 1 ;;
    size) ulimit -f 40 ;;
    memory) ulimit -v 900000 ;;
    stack) ulimit -s 100 ;;
    locked) ulimit -l 64 ;;
esac
exec python -u "$@"
