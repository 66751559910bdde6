"""The location of the Kubernetes lab's programs, which install-kubernetes-lab builds once."""

import os
import subprocess
from pathlib import Path

from tests.labs.need import missing

INSTALL = Path(__file__).with_name("install-kubernetes-lab")
INSTALL_SECONDS = 1500


def installed() -> Path:
    """Return the folder with the programs; skips the test if they are not installed."""
    where = subprocess.run([INSTALL, "where"], stdout=subprocess.PIPE, text=True, check=True, timeout=30)
    target = Path(where.stdout.strip())
    output = "make test-deps"
    if not target.is_dir() and os.environ.get("TEST_REQUIRE") == "all":
        done = subprocess.run(
            [INSTALL], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=INSTALL_SECONDS
        )
        output = done.stdout.strip()[-400:]
    if not target.is_dir():
        missing(f"the Kubernetes lab is not installed ({output})")
    return target
