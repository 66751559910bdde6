from collections.abc import Mapping
from typing import Any

import pytest

from service.contracts.event import JobCompletion
from service.kubernetes.errors import ClusterUnavailable, RequestRefused
from service.kubernetes.paths import Object
from service.watch import job_end_mapper
from service.watch.cluster_evidence import EvidenceCollector
from service.watch.node_watch import NodeStates
from tests.service.watch.objects import pod


class Cluster:
    def __init__(self, *events: Object, job: Object | Exception | None = None) -> None:
        self.events, self.job = events, job
        self.selectors: list[str] = []

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Object:
        if path.endswith("/events"):
            assert query is not None
            selector = str(query["fieldSelector"])
            self.selectors.append(selector)
            kind = selector.partition(",")[0].partition("=")[2]
            return {"items": [one for one in self.events if one["involvedObject"]["kind"] == kind]}
        if isinstance(self.job, Exception):
            raise self.job
        assert self.job is not None
        return self.job


def cluster_event(kind: str, reason: str, at: str, sort: str = "Warning") -> Object:
    about = {"kind": kind, "name": "train-p1" if kind == "Pod" else "gpu1"}
    return {"type": sort, "reason": reason, "message": "m", "lastTimestamp": at, "involvedObject": about}


def event() -> JobCompletion:
    found = job_end_mapper.read("Pod", pod(), "lab")
    assert isinstance(found, JobCompletion)
    return found


def test_events_of_pod_and_node_come_in_order_and_without_routine_ones() -> None:
    cluster = Cluster(
        cluster_event("Node", "NodeNotReady", "2026-11-21T10:58:00Z", "Normal"),
        cluster_event("Node", "RegisteredNode", "2026-11-21T09:00:00Z", "Normal"),
        cluster_event("Pod", "FailedMount", "2026-11-21T10:30:00Z"),
        cluster_event("Pod", "Scheduled", "2026-11-21T10:00:00Z", "Normal"),
        job=RequestRefused("jobs is forbidden", 403),
    )
    result = EvidenceCollector(cluster, NodeStates(), None).complete(event(), pod())
    assert [line.text for line in result.node_events] == ["Pod train-p1: FailedMount: m", "NodeNotReady: m"]
    assert any("involvedObject.uid=p1" in one for one in cluster.selectors)


def test_without_the_cluster_s_answer_on_the_job_it_waits() -> None:
    with pytest.raises(ClusterUnavailable):
        EvidenceCollector(Cluster(job=ClusterUnavailable("no answer")), NodeStates(), None).complete(event(), pod())


def test_a_job_that_can_t_be_read_leaves_the_pod_s_own_word() -> None:
    broken = {"metadata": {"name": "train", "labels": []}}
    assert EvidenceCollector(Cluster(job=broken), NodeStates(), None).complete(event(), pod()).status == "failed"
