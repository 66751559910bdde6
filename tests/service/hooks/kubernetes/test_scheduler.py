import copy
from datetime import timedelta
from typing import Any

import pytest

from service.hooks.kubernetes.manifest import new_job_name
from service.hooks.kubernetes.scheduler import KubernetesScheduler
from service.hooks.request import Failed, LeaseExpired, Ready, SchedulerUnavailable, Settled
from tests.service.frozen_clock import FrozenClock
from tests.service.hooks.kubernetes.world import AWAY, FORBIDDEN, NOW, OLD, Cluster, Lease, condition, job, request

NEW = new_job_name(OLD, "r7")


def scheduler(cluster: Cluster) -> KubernetesScheduler:
    return KubernetesScheduler(cluster, FrozenClock(NOW))


def with_status(**status: Any) -> dict[str, Any]:
    return {**job(), "status": status}


def with_annotation(value: str | None) -> dict[str, Any]:
    made = job()
    made["metadata"]["annotations"] = {} if value is None else {"faultline/resubmit": value}
    return made


def inspect(one: dict[str, Any], **asked: Any) -> Ready | Settled | Failed:
    return scheduler(Cluster(one)).inspect(request(**asked), begun_at=None)


def test_a_failed_job_is_created_again_once_and_the_old_one_stays() -> None:
    cluster = Cluster(job())
    hook = scheduler(cluster)
    seen = hook.inspect(request(exclude_nodes=("gpu1",)), begun_at=None)
    assert isinstance(seen, Ready)
    assert "gpu1" in seen.action_text
    done = hook.execute(request(exclude_nodes=("gpu1",)), Lease())
    assert done == Settled("done", f"created Job ml/{NEW} without gpu1", f"ml/Job/{NEW}")
    assert set(cluster.jobs) == {OLD, NEW}
    assert cluster.jobs[OLD] == job()
    again = hook.inspect(request(), begun_at=NOW)
    assert isinstance(again, Settled)
    assert (again.result, again.new_job_id) == ("done", f"ml/Job/{NEW}")
    assert hook.execute(request(), Lease()) == again
    assert len(cluster.jobs) == 2


def test_it_is_recorded_on_the_old_job_and_works_where_that_is_forbidden() -> None:
    cluster = Cluster(job())
    scheduler(cluster).execute(request(reasons=("node gpu1 is lost",)), Lease())
    [outcome] = cluster.events
    assert (outcome["reason"], outcome["involvedObject"]["uid"]) == ("Resubmitted", "11-22")
    assert "node gpu1 is lost" in outcome["message"]
    silent = Cluster(job())
    silent.refuses[("create", "/events")] = FORBIDDEN
    assert isinstance(scheduler(silent).execute(request(), Lease()), Settled)
    assert not silent.events
    assert NEW in silent.jobs


@pytest.mark.parametrize("wish", ["never", "advise"])
def test_a_job_that_opted_out_is_left_alone(wish: str) -> None:
    seen = inspect(with_annotation(wish))
    assert isinstance(seen, Settled)
    assert seen.result == "refused"
    assert wish in seen.detail


def test_the_annotation_or_label_of_the_pods_counts_too() -> None:
    careful = job()
    careful["spec"]["template"]["metadata"]["annotations"] = {"faultline/resubmit": "never"}
    seen = inspect(careful)
    assert isinstance(seen, Settled)
    assert seen.result == "refused"
    willing = with_annotation(None)
    willing["spec"]["template"]["metadata"]["labels"]["faultline/resubmit"] = "auto"
    assert isinstance(inspect(willing, extra={"ask_scheduler": True}), Ready)


def test_without_consent_in_the_scheduler_a_job_is_left_alone() -> None:
    asked = {"extra": {"ask_scheduler": True}}
    refused = inspect(with_annotation(None), **asked)
    assert isinstance(refused, Settled)
    assert refused.result == "refused"
    assert isinstance(inspect(with_annotation("auto"), **asked), Ready)
    assert isinstance(inspect(with_annotation(None)), Ready)


@pytest.mark.parametrize(
    ("status", "result"),
    [
        ({"active": 1, "failed": 1}, "refused"),
        ({"failed": 1, "uncountedTerminatedPods": {}}, "refused"),  # between two tries
        ({"conditions": [condition("Complete")]}, "already_done"),
        ({"conditions": [condition("Failed", "PodFailurePolicy")]}, "refused"),
    ],
)
def test_a_job_that_runs_succeeded_or_ended_itself_is_left_alone(status: dict[str, Any], result: str) -> None:
    limited = {**with_status(**status), "spec": {**job()["spec"], "backoffLimit": 3}}
    seen = inspect(limited)
    assert isinstance(seen, Settled)
    assert seen.result == result
    assert seen.detail


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [condition("FailureTarget")], "active": 1},
        {},
        {"failed": 1, "uncountedTerminatedPods": {"failed": ["uid"]}},
    ],
)
def test_a_job_that_is_ending_is_checked_again_later(status: dict[str, Any]) -> None:
    seen = inspect(with_status(**status))
    assert isinstance(seen, Failed)
    assert seen.retry_after_s


def test_a_suspended_job_is_left_to_its_queue() -> None:
    seen = inspect({**job(suspend=True), "status": {}})
    assert isinstance(seen, Settled)
    assert "suspended" in seen.detail


def test_the_controller_or_manager_of_a_job_decides() -> None:
    owned = job()
    owned["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "llm", "controller": True}]
    for one in (owned, job(managedBy="kueue.x-k8s.io/multikueue")):
        seen = inspect(one)
        assert isinstance(seen, Settled)
        assert seen.result == "refused"
    owned["metadata"]["ownerReferences"][0]["kind"] = "CronJob"
    assert isinstance(inspect(owned), Ready)


@pytest.mark.parametrize("ended_before", ["2026-11-21T09:00:00+00:00", "2026-11-21T09:00:00"])
def test_a_job_with_a_reused_name_is_another_job(ended_before: str) -> None:
    seen = inspect(job(), extra={"ended_before": ended_before})
    assert isinstance(seen, Settled)
    assert seen.result == "already_done"
    assert isinstance(inspect(job(), extra={"ended_before": "2026-11-21T11:30:00+00:00"}), Ready)


@pytest.mark.parametrize("job_id", ["123", "ml/PyTorchJob/x", "ml/Pod/x", "ml/Job/", "a/b/c/d"])
def test_only_jobs_are_created_again(job_id: str) -> None:
    seen = inspect(job(), job_id=job_id)
    assert isinstance(seen, Settled)
    assert seen.result == "refused"


def test_a_deleted_job_cannot_be_started_again_and_a_started_one_is_unknown() -> None:
    hook = scheduler(Cluster())
    first, later = hook.inspect(request(), begun_at=None), hook.inspect(request(), begun_at=NOW)
    assert isinstance(first, Settled)
    assert isinstance(later, Settled)
    assert (first.result, later.result) == ("refused", "unknown")


def test_after_jobs_have_been_deleted_a_missing_job_does_not_prove_that_none_was_started() -> None:
    hook = scheduler(Cluster(job(ttlSecondsAfterFinished=60)))
    assert isinstance(hook.inspect(request(), begun_at=NOW - timedelta(seconds=40)), Ready)
    seen = hook.inspect(request(), begun_at=NOW - timedelta(seconds=90))
    assert isinstance(seen, Settled)
    assert seen.result == "unknown"


def test_a_foreign_job_of_that_name_is_not_taken_for_ours() -> None:
    seen = scheduler(Cluster(job(), job(NEW))).inspect(request(), begun_at=None)
    assert isinstance(seen, Settled)
    assert seen.result == "refused"


def test_a_refusal_of_the_cluster_is_final_and_a_missing_answer_is_not() -> None:
    cluster = Cluster(job())
    cluster.refuses[("create", "/jobs")] = FORBIDDEN
    refused = scheduler(cluster).execute(request(), Lease())
    assert refused == Settled("refused", "jobs is forbidden")
    cluster.refuses[("create", "/jobs")] = AWAY
    with pytest.raises(SchedulerUnavailable):
        scheduler(cluster).execute(request(), Lease())
    cluster.refuses = {("get", OLD): AWAY}
    with pytest.raises(SchedulerUnavailable):
        scheduler(cluster).inspect(request(), begun_at=None)


def test_an_answer_that_was_lost_is_found_by_name() -> None:
    cluster = Cluster(job())
    cluster.after_create = AWAY
    with pytest.raises(SchedulerUnavailable):
        scheduler(cluster).execute(request(), Lease())
    seen = scheduler(cluster).inspect(request(), begun_at=NOW)
    assert isinstance(seen, Settled)
    assert seen.result == "done"


def test_a_job_that_may_have_been_created_is_not_refused_because_it_may_not_be_read() -> None:
    cluster = Cluster(job())
    cluster.after_create = AWAY
    with pytest.raises(SchedulerUnavailable):
        scheduler(cluster).execute(request(), Lease())
    cluster.refuses[("get", NEW)] = FORBIDDEN  # rights are being changed
    with pytest.raises(SchedulerUnavailable, match="forbidden"):
        scheduler(cluster).inspect(request(), begun_at=NOW)
    first = scheduler(cluster).inspect(request(), begun_at=None)
    assert first == Settled("refused", "jobs is forbidden")
    cluster.refuses.clear()
    seen = scheduler(cluster).inspect(request(), begun_at=NOW)
    assert isinstance(seen, Settled)
    assert seen.result == "done"


def test_nothing_is_created_after_the_lease() -> None:
    cluster = Cluster(job())
    with pytest.raises(LeaseExpired):
        scheduler(cluster).execute(request(), Lease(over=True))
    assert set(cluster.jobs) == {OLD}


def test_more_memory_goes_to_the_container_that_was_killed() -> None:
    two = job()
    main = two["spec"]["template"]["spec"]["containers"][0]
    two["spec"]["template"]["spec"]["containers"].append({**copy.deepcopy(main), "name": "loader"})
    cluster = Cluster(two)
    killed = {"name": "loader", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    cluster.objects["/api/v1/namespaces/ml/pods/p"] = {"status": {"containerStatuses": [killed]}}
    scheduler(cluster).execute(request(changes={"memory_bytes": 24 * 2**30}), Lease())
    limits = {
        one["name"]: one["resources"]["limits"]["memory"]
        for one in cluster.jobs[NEW]["spec"]["template"]["spec"]["containers"]
    }
    assert limits == {"main": "8Gi", "loader": str(16 * 2**30)}
