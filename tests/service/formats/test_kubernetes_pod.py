import copy
from typing import Any

import pytest

from tests.service.formats.examples import event, load, skipped, wrong_field


def pod(**status: Any) -> dict[str, Any]:
    """The example's pod with another status."""
    obj = copy.deepcopy(load("pod"))
    obj["status"] = {"phase": "Failed", "startTime": "2026-11-18T09:00:05Z", **status}
    return obj


def ended(code: int, reason: str = "Error", at: str = "2026-11-18T11:00:00Z", **more: Any) -> dict[str, Any]:
    return {
        "name": "c",
        "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "reason": reason, "finishedAt": at, **more}},
    }


def disrupted(reason: str, kind: str = "DisruptionTarget") -> list[dict[str, str]]:
    at = "2026-11-18T10:30:00Z"
    return [{"type": kind, "status": "True", "reason": reason, "message": "why", "lastTransitionTime": at}]


def test_a_pod_under_a_job_is_an_attempt_of_that_job() -> None:
    found = event(load("pod"))
    assert (found.job_id, found.name, found.pod) == ("nlp/Job/bert-ft", "bert-ft", "bert-ft-2-x7k4q")
    assert found.event_id == "kubernetes:Pod:0b9c3c1e-5a55-4f0e-9a4d-1f5f0a6f3d10"
    assert (found.attempt, found.exit_code, found.reason) == (1, 1, "Error")
    assert (found.gpus, found.gpu_type, found.nodes) == (8, "NVIDIA-A100-SXM4-80GB", ("node-a8",))
    assert found.requested is not None
    assert found.requested.cpus == 64
    assert found.command == "python train.py --lr 1e-4"
    assert found.labels["faultline/resubmit"] == "auto"


def test_a_termination_message_that_is_a_log_is_one_under_the_pods_rank() -> None:
    [ref] = event(load("pod")).logs
    assert (ref.rank, ref.node) == (2, "node-a8")
    assert ref.tail is not None
    assert ref.tail.endswith("KeyError: 'labels'\n")


def test_torchelastics_error_file_is_read_as_a_traceback() -> None:
    error = '{"message": {"message": "KeyError", "extraInfo": {"py_callstack": "Traceback\\nKeyError: 7"}}}'
    [ref] = event(pod(containerStatuses=[ended(1, message=error)])).logs
    assert ref.tail == "Traceback\nKeyError: 7"
    assert not event(pod(containerStatuses=[ended(1, message='{"message": "{')])).logs


@pytest.mark.parametrize(
    ("error", "tail"),
    [
        (
            '{"message": {"message": "RuntimeError: CUDA error", "extraInfo": {"py_callstack": "Traceback\\n  File"}}}',
            "Traceback\n  File\nRuntimeError: CUDA error",
        ),
        ('{"message": "KeyError: 7", "timestamp": "1763463600"}', "KeyError: 7"),
    ],
)
def test_torchelastics_error_file_names_the_exception(error: str, tail: str) -> None:
    [ref] = event(pod(containerStatuses=[ended(1, message=error)])).logs
    assert ref.tail == tail


def test_torchelastics_error_file_of_a_process_without_an_exception_is_no_log() -> None:
    error = '{"message": "<NONE>", "errorTraits": {"category": "system_terminated_error"}}'
    assert not event(pod(containerStatuses=[ended(1, message=error)])).logs


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"conditions": disrupted("PreemptionByScheduler")}, ("preempted", "PreemptionByScheduler", None)),
        ({"conditions": disrupted("EvictionByEvictionAPI")}, ("evicted", "EvictionByEvictionAPI", None)),
        ({"conditions": disrupted("DeletionByTaintManager")}, ("evicted", "DeletionByTaintManager", None)),
        ({"conditions": disrupted("TerminationByKubelet")}, ("evicted", "TerminationByKubelet", None)),
        (
            {"conditions": disrupted("TerminationByKubelet"), "reason": "Preempting"},
            ("preempted", "TerminationByKubelet", None),
        ),
        ({"conditions": disrupted("DeletionByPodGC")}, ("node_fail", "DeletionByPodGC", None)),
        ({"conditions": disrupted("StoppedByKueue", "TerminationTarget")}, ("cancelled", "StoppedByKueue", None)),
        ({"conditions": disrupted("Preempted", "TerminationTarget")}, ("preempted", "Preempted", None)),
        ({"containerStatuses": [ended(137, "OOMKilled")]}, ("out_of_memory", "OOMKilled", 137)),
        ({"containerStatuses": [ended(137)]}, ("failed", "Error", 137)),
        ({"containerStatuses": [ended(143)]}, ("failed", "Error", 143)),
        ({"containerStatuses": [ended(1)], "reason": "DeadlineExceeded"}, ("timeout", "DeadlineExceeded", 1)),
        ({"containerStatuses": [ended(1)], "reason": "NodeLost"}, ("node_fail", "NodeLost", 1)),
        ({"containerStatuses": [ended(1)], "reason": "Evicted"}, ("evicted", "Evicted", 1)),
        ({"containerStatuses": [ended(128, "StartError")]}, ("failed", "StartError", 128)),
    ],
)
def test_why_a_pod_ended(status: dict[str, Any], expected: tuple[str, str, int | None]) -> None:
    found = event(pod(**status))
    assert (found.status, found.reason, found.exit_code) == expected


def test_a_disruption_explains_the_137_that_it_caused() -> None:
    found = event(pod(conditions=disrupted("PreemptionByScheduler"), containerStatuses=[ended(137)]))
    assert (found.status, found.exit_code, found.message) == ("preempted", 137, "why")


def test_a_pod_that_succeeded() -> None:
    last = {"terminated": {"exitCode": 1, "finishedAt": "2026-11-18T09:10:00Z"}}
    found = event(pod(phase="Succeeded", containerStatuses=[{**ended(0, "Completed"), "lastState": last}]))
    assert (found.status, found.exit_code) == ("succeeded", 0)


def test_the_container_that_failed_first_represents_the_pod() -> None:
    found = event(
        pod(
            initContainerStatuses=[
                ended(0, "Completed", "2026-11-18T09:01:00Z"),
                ended(143, at="2026-11-18T11:00:09Z"),
            ],
            containerStatuses=[ended(143, at="2026-11-18T11:00:05Z"), ended(3, at="2026-11-18T11:00:01Z")],
        )
    )
    assert found.exit_code == 3
    assert found.ended_at.isoformat() == "2026-11-18T11:00:09+00:00"


def test_after_a_restart_the_failure_stands_in_the_last_state() -> None:
    waiting = {"name": "c", "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    last = {"terminated": {"exitCode": 7, "reason": "Error", "finishedAt": "2026-11-18T10:00:00Z"}}
    found = event(
        pod(conditions=disrupted("EvictionByEvictionAPI"), containerStatuses=[{**waiting, "lastState": last}])
    )
    assert (found.exit_code, found.restart_count) == (7, 4)


def running(at: str = "2026-11-18T09:01:10Z", **more: Any) -> dict[str, Any]:
    return {"name": "c", "restartCount": 0, "state": {"running": {"startedAt": at}}, **more}


def test_a_pod_of_a_lost_node_did_not_end_with_its_init_container() -> None:
    found = event(
        pod(
            conditions=disrupted("DeletionByPodGC"),
            initContainerStatuses=[ended(0, "Completed", "2026-11-18T09:01:00Z")],
            containerStatuses=[running()],
        )
    )
    assert (found.status, found.ended_at.isoformat()) == ("node_fail", "2026-11-18T10:30:00+00:00")


def test_a_pod_whose_init_container_failed_ended_with_it() -> None:
    waiting = {"name": "c", "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}}
    found = event(
        pod(
            conditions=[{**disrupted("x", "PodReadyToStartContainers")[0]}],
            initContainerStatuses=[ended(2, at="2026-11-18T09:01:00Z")],
            containerStatuses=[waiting],
        )
    )
    assert (found.exit_code, found.ended_at.isoformat()) == (2, "2026-11-18T09:01:00+00:00")


@pytest.mark.parametrize(
    "metadata",
    [
        {"deletionTimestamp": "2026-11-18T15:00:00Z"},
        {"managedFields": [{"time": "2026-11-18T09:01:00Z"}, {"time": "2026-11-18T15:00:00Z"}]},
    ],
)
def test_a_pod_that_is_deleted_while_it_runs_ends_then_and_not_when_it_got_ready(metadata: dict[str, Any]) -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-18T09:01:11Z"}
    alone = pod(phase="Running", conditions=[ready], containerStatuses=[running()])
    alone["metadata"] |= {"ownerReferences": []} | metadata
    found = event({"type": "DELETED", "object": alone})
    assert (found.status, found.ended_at.isoformat()) == ("cancelled", "2026-11-18T15:00:00+00:00")


def test_a_pod_without_times_of_its_containers_ends_when_it_is_no_longer_ready() -> None:
    unknown = {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}
    started = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-18T09:00:05Z"}
    over = {"type": "Ready", "status": "False", "reason": "PodFailed", "lastTransitionTime": "2026-11-18T15:00:00Z"}
    found = event(
        pod(
            conditions=[started, over],
            containerStatuses=[{"name": "c", "restartCount": 0, "state": {"terminated": unknown}}],
        )
    )
    assert (found.exit_code, found.ended_at.isoformat()) == (137, "2026-11-18T15:00:00+00:00")


def test_a_pod_that_its_node_did_not_admit_ends_at_once() -> None:
    found = event(pod(reason="UnexpectedAdmissionError", message="Allocate failed due to no GPU"))
    assert (found.status, found.reason) == ("failed", "UnexpectedAdmissionError")
    assert found.ended_at.isoformat() == "2026-11-18T09:00:05+00:00"


def test_a_container_that_runs_again_has_overcome_its_earlier_failure() -> None:
    last = {"terminated": {"exitCode": 7, "reason": "Error", "message": "a\nb", "finishedAt": "2026-11-18T09:20:00Z"}}
    again = running("2026-11-18T09:20:05Z", restartCount=1, lastState=last)
    found = event(pod(conditions=disrupted("DeletionByTaintManager"), containerStatuses=[again]))
    assert (found.exit_code, found.message, found.logs, found.restart_count) == (None, "why", (), 1)


def test_what_a_container_waited_for_is_kept() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "registry.example/none:1"'}
    found = event(
        pod(
            conditions=[{**disrupted("x", "Ready")[0], "status": "True"}],
            containerStatuses=[{"name": "c", "restartCount": 0, "state": {"waiting": waiting}}],
        )
    )
    assert (found.status, found.reason) == ("failed", "ImagePullBackOff")
    assert "registry.example/none:1" in (found.message or "")


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", None])
def test_a_running_pod_is_no_end(phase: str | None) -> None:
    assert "not an end" in skipped(pod(phase=phase))


def test_a_watch_sees_a_pod_go() -> None:
    gone = {"type": "DELETED", "object": pod(phase="Running", conditions=disrupted("PreemptionByScheduler"))}
    assert event(gone).status == "preempted"
    assert event(load("watch")).status == "evicted"
    assert "controller" in skipped({"type": "DELETED", "object": pod(phase="Running")})
    alone = pod(phase="Running")
    alone["metadata"] |= {"ownerReferences": [], "deletionTimestamp": "2026-11-18T10:00:00Z"}
    assert event({"type": "DELETED", "object": alone}).status == "cancelled"


@pytest.mark.parametrize(
    ("labels", "owner", "job"),
    [
        ({}, None, "nlp/Pod/bert-ft-2-x7k4q"),
        ({}, {"kind": "PyTorchJob", "name": "p", "controller": True}, "nlp/PyTorchJob/p"),
        ({}, {"kind": "Job", "name": "p"}, "nlp/Pod/bert-ft-2-x7k4q"),
        (
            {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "t"},
            {"kind": "RayCluster", "name": "t-x", "controller": True},
            "nlp/RayJob/t",
        ),
        (
            {"jobset.sigs.k8s.io/jobset-name": "s"},
            {"kind": "Job", "name": "s-node-0", "controller": True},
            "nlp/JobSet/s",
        ),
        (
            {"jobset.sigs.k8s.io/jobset-name": "s", "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"},
            {"kind": "Job", "name": "s-node-0", "controller": True},
            "nlp/TrainJob/s",
        ),
    ],
)
def test_the_job_is_the_outermost_controller(labels: dict[str, str], owner: dict[str, Any] | None, job: str) -> None:
    obj = load("pod")
    obj["metadata"] |= {"labels": labels, "ownerReferences": [owner] if owner else None}
    assert event(obj).job_id == job


def test_without_a_uid_the_same_pod_is_still_the_same() -> None:
    obj = load("pod")
    del obj["metadata"]["uid"]
    other = copy.deepcopy(obj)
    other["metadata"]["name"] = "bert-ft-3-aaaaa"
    assert event(obj).key() == event(copy.deepcopy(obj)).key() != event(other).key()


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"containerStatuses": [ended(256)]}, "status.containerStatuses[0].state.terminated.exitCode"),
        ({"containerStatuses": [ended(-1)]}, "status.containerStatuses[0].state.terminated.exitCode"),
        ({"containerStatuses": [ended(1, at="soon")]}, "status.containerStatuses[0].state.terminated.finishedAt"),
        ({"containerStatuses": {}}, "status.containerStatuses"),
        ({"conditions": [1]}, "status.conditions"),
        ({"phase": 3}, "status.phase"),
        ({"startTime": 12, "containerStatuses": [ended(1)]}, "status.startTime"),
        ({}, "status.containerStatuses"),
    ],
)
def test_a_wrong_field_is_named(status: dict[str, Any], field: str) -> None:
    assert wrong_field(pod(**status)) == field
