"""Tools of the Kubernetes lab: where install-kubernetes-lab put its programs, and how a test changes an object."""

import os
import subprocess
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kubernetes.config import new_client_from_config

from service.kubernetes.errors import RequestRefused
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


def patch(kubeconfig: Path, path: str, change: Mapping[str, Any]) -> None:
    """Merge a change into an object (RFC 7386), as `kubectl patch` does. Faultline itself changes no object.

    Args:
        kubeconfig: names the cluster, and the user who changes the object.
        path: of the object in the API.
        change: the changed fields; None removes one.

    Raises:
        RequestRefused: the API server refuses it.
    """
    with new_client_from_config(str(kubeconfig)) as client:
        request = client.param_serialize(
            "PATCH",
            path,
            header_params={"Content-Type": "application/merge-patch+json"},
            body=dict(change),
            auth_settings=["BearerToken"],
        )
        response = client.call_api(*request).response
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise RequestRefused(f"{path}: {response.status} {response.reason}", response.status)
