"""Job logs on a file system that hangs: a real mount whose reads do not return."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.contracts.event import JobCompletion, from_object
from service.logs import fetch
from service.logs.fetch import LogFetcher
from tests.labs.fuse_folder import FuseFolder, available, fuse_folder


@pytest.fixture
def hanging() -> Iterator[FuseFolder]:
    if not available():
        pytest.skip("needs root and /dev/fuse")
    with fuse_folder({f"{number}.log": b"step 1\nCUDA error\n" for number in range(40)}) as folder:
        yield folder


def ended(number: int, path: Path) -> JobCompletion:
    return from_object(
        {
            "cluster": "c",
            "job_id": str(number),
            "status": "failed",
            "ended_at": "2026-11-20T10:00:00Z",
            "logs": [{"uri": str(path)}],
        }
    )


def test_a_hanging_file_system_holds_up_no_log_of_another_and_is_read_again(
    hanging: FuseFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "HANGING_S", 0.2)
    (tmp_path / "a.log").write_text("fine\n")
    fetcher = LogFetcher([str(hanging.path), str(tmp_path)], any_owner=[str(hanging.path), str(tmp_path)])
    events = [*(ended(number, hanging.path / f"{number}.log") for number in range(40)), ended(40, tmp_path / "a.log")]
    hanging.hang()
    # Once the file system is known to hang, it has only 0.2 s of the minute that the other log may take.
    for deadline_s, limit_s in ((3.0, 3.0), (60.0, 0.2), (60.0, 0.2)):
        began = time.monotonic()
        found = fetcher.fetch_all(events, deadline_s)
        assert time.monotonic() - began < 30
        assert [len(one.pending) for one in found] == [1] * 40 + [0]
        assert found[-1].streams[0].text == "fine\n"
        assert f"not arrived within {limit_s:g} s" in str(found[0].streams[0].missing)
    assert hanging.asked.wait(60)
    hanging.answer()
    deadline = time.monotonic() + 60
    while any(one.pending for one in fetcher.fetch_all(events, 60.0)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert {one.streams[0].text for one in fetcher.fetch_all(events[:40], 60.0)} == {"step 1\nCUDA error\n"}
    fetcher.close()
