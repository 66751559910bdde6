#!/bin/bash
# Builds the extension before the job.
set -e
echo "building fused kernels"
${CC:-gcc} ${FLAGS:-"-O2"} "$@"
echo "built"
