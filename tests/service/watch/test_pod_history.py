from datetime import timedelta

import pytest

from service.contracts.event import JobCompletion, LogRef
from service.watch import job_end_mapper, pod_history
from service.watch.pod_history import PodEnd, PodEndHistory, root, with_root
from tests.service.watch.objects import NOW, job, pod


def end(uid: str, created: int, ended: int, status: str = "failed") -> PodEnd:
    """A pod's end; times in minutes."""
    found = job_end_mapper.read("Pod", pod(uid), "lab")
    assert isinstance(found, JobCompletion)
    result = {"status": status, "ended_at": NOW + timedelta(minutes=ended), "logs": (LogRef(tail="text"),)}
    return PodEnd(uid, NOW + timedelta(minutes=created), found.model_copy(update=result))


def own_end(kind: str = "Failed", reason: str = "BackoffLimitExceeded") -> JobCompletion:
    found = job_end_mapper.read("Job", job((kind, reason)), "lab")
    assert isinstance(found, JobCompletion)
    return found


def test_the_first_of_the_last_try_is_the_root_and_a_disrupted_one_before_it() -> None:
    first_try, second_try = end("a", 0, 5), [end("b", 6, 20), end("c", 6, 19)]
    assert root([first_try, *second_try]) == second_try[1]
    disrupted = end("d", 6, 21, "preempted")
    assert root([first_try, *second_try, disrupted]) == disrupted
    assert root([]) is None


def test_the_end_of_a_job_has_the_facts_of_its_pod() -> None:
    result = with_root(own_end(), end("a", 0, 5, "out_of_memory"), None)
    assert (result.status, result.reason, result.exit_code, result.nodes) == ("out_of_memory", "Error", 1, ("gpu1",))
    assert result.message is not None
    assert "BackoffLimitExceeded: words" in result.message
    assert result.logs
    assert result.key() == own_end().key()


def test_a_deadline_is_the_job_s_own_and_says_what_was_waited_for() -> None:
    late = own_end(reason="DeadlineExceeded")
    result = with_root(late, end("a", 0, 5), "main: ImagePullBackOff: no such image")
    assert result.status == "timeout"
    assert result.message == "words\nmain: ImagePullBackOff: no such image"
    assert with_root(late, None, None) == late


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in {"JOBS_MOST": 3, "PODS_MOST": 2, "LOGGED_MOST": 2}.items():
        monkeypatch.setattr(pod_history, name, most)
    known = PodEndHistory()
    for number in range(5):
        for uid in "abc":
            known.put(f"job{number}", end(uid, 0, 5))
        known.wait(f"job{number}", "main: ErrImagePull")
    assert [len(known.of(f"job{number}")) for number in range(5)] == [0, 0, 2, 2, 2]
    assert [known.waiting(f"job{number}") is not None for number in range(5)] == [False, False, True, True, True]
    logged = [len(one.event.logs) for number in range(5) for one in known.of(f"job{number}")]
    assert logged == [0, 0, 0, 0, 1, 1]
    known.forget("job4")
    assert known.of("job4") == []
