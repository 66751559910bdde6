#!/bin/bash
# The launch line of a job script.
set -e
echo "nodes: ${NODES:-$(hostname)}"
${MPIRUN:-mpirun.openmpi} "$@"
