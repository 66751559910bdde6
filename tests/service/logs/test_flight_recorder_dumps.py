"""Flight Recorder dumps among the logs of an event."""

import os
import pickle
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from classifiers.case_builder import build_case
from classifiers.contracts import LogStream
from service.cli.classifier.verdict_of_event import case_of
from service.contracts.event import JobCompletion, from_object
from service.logs.fetch import LogFetcher

DUMPS = Path(__file__).parents[2] / "data" / "flight_recorder" / "missing_rank"
ME = pwd.getpwuid(os.getuid()).pw_name


def job(*logs: dict[str, Any]) -> JobCompletion:
    facts = {"cluster": "c", "job_id": "1", "status": "failed", "ended_at": "2026-11-20T10:00:00Z", "user": ME}
    return from_object({**facts, "logs": list(logs)})


@pytest.fixture
def fetcher(tmp_path: Path) -> Iterator[LogFetcher]:
    made = LogFetcher([str(tmp_path)])
    yield made
    made.close()


def fetched(fetcher: LogFetcher, event: JobCompletion) -> tuple[LogStream, ...]:
    [found] = fetcher.fetch_all([event], 10)
    return found.streams


@pytest.mark.parametrize("form", ["json", "pickle"])
def test_dumps_are_read_by_uri_and_name_the_rank(fetcher: LogFetcher, tmp_path: Path, form: str) -> None:
    logs = []
    for path in DUMPS.glob(f"*.{form}"):
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        logs.append({"kind": "flight_recorder", "uri": str(copy)})  # the rank is that of the file's name
    event = job({"rank": 0, "tail": "step 1"}, *logs)
    raw = build_case(event, fetched(fetcher, event))
    assert [one.text for one in raw.streams] == ["step 1"]
    assert raw.collectives is not None
    assert [one.ranks for one in raw.collectives.failures] == [(2,)]


def test_inline_dumps_are_read_without_a_service(fetcher: LogFetcher) -> None:
    logs = [{"rank": n, "kind": "flight_recorder", "tail": (DUMPS / f"rank_{n}.json").read_text()} for n in range(4)]
    event = job(*logs)
    for raw in (case_of(event), build_case(event, fetched(fetcher, event))):
        assert raw.collectives is not None
        assert [one.ranks for one in raw.collectives.failures] == [(2,)]


def test_a_hostile_dump_runs_nothing_and_is_listed(fetcher: LogFetcher, tmp_path: Path) -> None:
    made = tmp_path / "made"
    hostile = tmp_path / "rank_0"
    hostile.write_bytes(b"\x80\x02cpathlib\nPath.touch\n" + pickle.dumps(str(made), 2)[2:-1] + b"\x85R.")
    event = job({"rank": 0, "kind": "flight_recorder", "uri": str(hostile)})
    raw = build_case(event, fetched(fetcher, event))
    assert raw.collectives is not None
    assert raw.collectives.unreadable[0].startswith("Flight Recorder dump of rank 0: the pickle is refused")
    assert not made.exists()


def test_a_dump_that_is_not_there_yet_is_tried_again(fetcher: LogFetcher, tmp_path: Path) -> None:
    event = job({"rank": 0, "kind": "flight_recorder", "uri": str(tmp_path / "rank_0")})
    [found] = fetcher.fetch_all([event], 10)
    assert [one.kind for one in found.pending] == ["flight_recorder"]
    raw = build_case(event, found.streams)
    assert raw.collectives is not None
    assert "no such file" in raw.collectives.unreadable[0]


def test_a_log_of_an_unknown_kind_is_kept_and_not_read(fetcher: LogFetcher, tmp_path: Path) -> None:
    (tmp_path / "film").write_text("frames")
    event = job({"rank": 0, "kind": "video", "uri": str(tmp_path / "film")}, {"rank": 1, "kind": "video", "tail": "x"})
    assert [log.kind for log in event.logs] == ["video", "video"]
    streams = fetched(fetcher, event)
    assert [one.text for one in streams] == ["", ""]
    assert {one.missing for one in streams} == {"logs of kind 'video' are not read"}
