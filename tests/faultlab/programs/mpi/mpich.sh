#!/bin/bash
# Runs a Python program under MPICH.
set -e
mkdir -p lib
ln -sf /usr/lib/x86_64-linux-gnu/libmpich.so.12 lib/libmpi.so.12
export MPI4PY_MPIABI=mpich LD_LIBRARY_PATH=$PWD/lib
count=$1
shift
exec mpirun.mpich -n "$count" ${WORDS:-} python -u "$@"
