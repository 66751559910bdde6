from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.kubernetes.job import TRACKED, retrier
from service.formats.kubernetes.meta import quantity


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        (8, 8),
        ("8", 8),
        ("1500m", 1),
        ("16Gi", 16 * 2**30),
        ("1.5G", 1_500_000_000),
        ("2k", 2000),
        (None, None),
        (True, None),
        ("", None),
        ("-1", None),
        ("1e3", None),
        ("lots", None),
        ("9999999999999999Pi", None),
    ],
)
def test_a_quantity_is_a_whole_number_or_unknown(value: Any, whole: int | None) -> None:
    assert quantity(value) == whole


def test_a_share_of_a_processor_counts_as_one() -> None:
    assert quantity("1500m", up=True) == 2
    assert quantity("2000m", up=True) == 2


@given(st.text(alphabet="0123456789.kKMGTPimeE+-", max_size=30))
def test_any_text_is_a_count_or_none(value: str) -> None:
    found = quantity(value)
    assert found is None or 0 <= found <= 2**53


def job(limit: int | None = None, failed: int = 0, **spec: Any) -> dict[str, Any]:
    status = {"failed": failed}
    limited = spec if limit is None else {"backoffLimit": limit, **spec}
    return {"metadata": {"name": "j", "uid": "u"}, "spec": limited, "status": status}


def pod(*, counted: bool, index_failures: int | None = None) -> dict[str, Any]:
    result = {} if index_failures is None else {"batch.kubernetes.io/job-index-failure-count": str(index_failures)}
    return {"metadata": {"name": "p", "finalizers": [] if counted else [TRACKED], "annotations": result}}


@pytest.mark.parametrize(
    ("one", "end", "tries"),
    [
        (job(0), pod(counted=False), False),
        (job(0, 1), pod(counted=True), False),
        (job(1), pod(counted=False), True),
        (job(1, 1), pod(counted=False), False),
        (job(None, 6), None, True),
        (job(None, 7), None, False),
        (job(0, backoffLimitPerIndex=1), pod(counted=True, index_failures=0), True),
        (job(0, backoffLimitPerIndex=1), pod(counted=True, index_failures=1), False),
    ],
)
def test_a_job_tries_again_until_its_limit_is_used_up(
    one: dict[str, Any], end: dict[str, Any] | None, tries: bool
) -> None:
    assert (retrier(one, end) is not None) is tries


@pytest.mark.parametrize("kind", ["Failed", "FailureTarget", "Complete"])
def test_a_job_that_has_ended_tries_nothing(kind: str) -> None:
    ended = job(6)
    ended["status"]["conditions"] = [{"type": kind, "status": "True"}]
    assert retrier(ended) is None


def test_whatever_controls_a_job_decides_but_a_cron_job_only_starts_the_next() -> None:
    owned = job(0, 1)
    owned["metadata"]["ownerReferences"] = [{"kind": "Workflow", "name": "nightly", "controller": True}]
    assert retrier(owned) == "Workflow nightly controls this Job"
    owned["metadata"]["ownerReferences"][0]["kind"] = "CronJob"
    assert retrier(owned) is None
