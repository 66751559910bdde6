#!/bin/bash
# Builds the solver with one MPI and runs it with the same one.
set -e
flavour=$1
count=$2
shift 2
mpicc.$flavour -O0 -w -o solver native.c
case $flavour in
    openmpi) exec mpirun.openmpi --allow-run-as-root --oversubscribe -n "$count" ./solver "$@" ;;
    mpich) exec mpirun.mpich -n "$count" ./solver "$@" ;;
esac
