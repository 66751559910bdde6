#!/bin/bash
# Installs what the job needs into its own folder, then starts.
set -e
python wheels.py $CUT
echo "[setup] python $(python -V 2>&1 | cut -d' ' -f2)"
python -m pip install --disable-pip-version-check --no-color --target site "$@"
PYTHONPATH=site python -c "import fastops; print('fastops', fastops.__version__)"
