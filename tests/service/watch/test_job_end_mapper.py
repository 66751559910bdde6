from typing import Any

import pytest

from service.contracts.event import JobCompletion, LogRef, NodeEventIn
from service.formats.field_reading import Skipped
from service.watch import job_end_mapper
from tests.service.watch.objects import disruption, job, pod

FAILED = ("Failed", "BackoffLimitExceeded")


def event(obj: dict[str, Any], *, deleted: bool = False) -> JobCompletion:
    found = job_end_mapper.read(obj["kind"], obj, "lab", deleted=deleted)
    assert isinstance(found, JobCompletion)
    return found


def test_a_pod_and_a_job_have_ids_of_their_own_that_stay() -> None:
    assert event(pod("p1")).key() == event(pod("p1", reason="Evicted")).key() == "kubernetes:Pod:p1"
    assert event(job(FAILED)).key() == "kubernetes:Job:train-uid"
    assert event(job(FAILED)).resubmit_of == "ml/Job/before"


def test_a_running_job_sends_nothing() -> None:
    assert isinstance(job_end_mapper.read("Pod", pod(phase="Running"), "lab"), Skipped)
    assert isinstance(job_end_mapper.read("Job", job(), "lab"), Skipped)
    assert not job_end_mapper.ended("Job", job())
    assert job_end_mapper.ended("Job", job(FAILED))
    assert job_end_mapper.ended("Pod", pod())


def test_a_job_knows_whose_its_pods_are() -> None:
    result = job_end_mapper.with_job(event(pod()), pod(), job(FAILED, activeDeadlineSeconds=60))
    assert (result.queue, result.user, result.time_limit_s) == ("gpus", "ana", 60)
    assert result.labels["faultline/resubmit"] == "auto"
    assert result.resubmit_of == "ml/Job/before"
    assert "faultline/retrier" not in result.labels


def test_a_job_with_tries_left_says_so_in_its_pod_s_end() -> None:
    left = job(backoffLimit=3)
    left["status"]["failed"] = 1
    assert "1 of 3" in job_end_mapper.with_job(event(pod()), pod(), left).labels["faultline/retrier"]


def test_what_the_taint_manager_calls_an_eviction_is_the_end_of_a_lost_node() -> None:
    tainted = event(pod(phase="Running", conditions=[disruption("DeletionByTaintManager")]), deleted=True)
    assert tainted.status == "evicted"
    assert job_end_mapper.with_evidence(tainted, lost=True).status == "node_fail"
    assert job_end_mapper.with_evidence(tainted, lost=False).status == "evicted"
    api = event(pod(phase="Running", conditions=[disruption("EvictionByEvictionAPI")]), deleted=True)
    assert job_end_mapper.with_evidence(api, lost=True).status == "evicted"


def test_evidence_is_added_and_nothing_is_repeated() -> None:
    traceback = ended_with("Traceback:\n  boom\n")
    lines = [NodeEventIn(text=f"line {n}") for n in range(job_end_mapper.LINES_MOST + 5)]
    same = LogRef(stream="stderr", tail="Traceback:\n  boom\n")
    other = LogRef(stream="main", tail="step 1\n")
    result = job_end_mapper.with_evidence(traceback, lost=False, lines=lines, logs=[same, other])
    assert [one.text for one in result.node_events] == [one.text for one in lines[-job_end_mapper.LINES_MOST :]]
    assert [one.tail for one in result.logs] == ["Traceback:\n  boom\n", "step 1\n"]


def ended_with(message: str) -> JobCompletion:
    failed = pod()
    failed["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = message
    return event(failed)


@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_a_vanished_job_is_sent_as_unknown_and_enters_no_rate(kind: str) -> None:
    at = {"since": "2026-11-21T11:00:00+00:00", "now": "2026-11-21T12:00:00+00:00"}
    result = job_end_mapper.vanished(kind, "ml", "train", "u7", "lab", **at)
    assert (result.status, result.reason, result.key()) == ("cancelled", "UnknownEnd", f"kubernetes:{kind}:u7")
    assert result.message is not None
    assert "while nobody watched" in result.message
