"""Labels of nodes of a real Kubernetes API reach the map of nodes: racks, else zones, and a node that was moved."""

import re
import signal
import urllib.request
from contextlib import suppress
from typing import Any

import pytest

from service.kubernetes.paths import named
from tests.flows.test_kubernetes import CLUSTER, Site, job, site
from tests.labs.kubernetes import NODES
from tests.labs.kubernetes_tools import patch

__all__ = ["site"]  # a fixture

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("kubernetes")]  # one control plane at a time

ZONE, RACK = "topology.kubernetes.io/zone", "cloud.provider.com/topology-rack"
LEAF, NVLINK = "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/accelerator"


def label(site: Site, node: str, **labels: str | None) -> None:
    patch(site.cluster.kubeconfig, named("v1", "nodes", None, node), {"metadata": {"labels": labels}})


def run_on(site: Site, node: str, name: str) -> None:
    """Run a Job on a node to its success."""
    wanted: dict[str, Any] = job(name, "main")
    wanted["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    site.cluster.apply(wanted)
    site.cluster.end_pod(site.cluster.running_pod(name), 0)


def headings(site: Site) -> dict[str, str]:
    """The heading of each node on the map of the page."""
    with urllib.request.urlopen(f"{site.url}/nodes", timeout=120) as answer:
        page = answer.read().decode()
    found: dict[str, str] = {}
    for title, cells in re.findall(r"<h4>(.*?)</h4>(.*?)</ul>", page, re.DOTALL):
        found |= {node: title for node in NODES if f"/nodes/{CLUSTER}/{node}" in cells}
    return found


def shows(site: Site, expected: dict[str, str]) -> None:
    """Wait until the map has these headings: the counts of nodes follow the ends of jobs after some seconds."""
    with suppress(AssertionError):
        site.wait(lambda: headings(site) == expected, "the map")
    assert headings(site) == expected


def test_the_map_groups_nodes_by_the_zones_and_racks_of_their_labels(site: Site) -> None:
    for node in NODES:
        label(site, node, **{ZONE: "east" if node != "gpu4" else "west"})
    for node in NODES:
        run_on(site, node, f"first-{node}")
    zones = {node: "zone west" if node == "gpu4" else "zone east" for node in NODES}
    shows(site, zones)

    for node, rack in {"gpu1": "r1", "gpu2": "r1", "gpu3": "r2"}.items():
        label(site, node, **{RACK: rack, LEAF: "leaf2", NVLINK: f"nv-{rack}"})
    for node in NODES:
        run_on(site, node, f"second-{node}")
    racks = {"gpu1": "rack r1", "gpu2": "rack r1", "gpu3": "rack r2", "gpu4": "rack not known"}
    shows(site, racks)
    places = {one["node"]: [one[kind] for kind in ("rack", "switch", "zone", "block")] for one in nodes(site)}
    assert places["gpu3"] == ["r2", "leaf2", "east", "nv-r2"]
    assert places["gpu4"] == [None, None, "west", None]

    # The node was moved, and its next job ended, while the watcher was down.
    assert site.end("watch", signal.SIGTERM) == 0
    label(site, "gpu2", **{RACK: "r2"})
    run_on(site, "gpu2", "third-gpu2")
    site.watch()
    shows(site, racks | {"gpu2": "rack r2"})


def nodes(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.ask("/nodes")["items"]
    return found
