#!/bin/bash
# Builds a whole project.
set -eo pipefail
tool=$1
shift
case $tool in
    make) make "$@" 2>&1 | tee build.log ;;
    cmake) cmake -S . -B build "$@" && cmake --build build 2>&1 ;;
    ninja) ninja "$@" ;;
    setup) python setup.py build_ext --inplace 2>&1 ;;
    pip) python -m pip install --no-index --no-build-isolation --disable-pip-version-check "$@" . ;;
esac
python -c "import fastops"
