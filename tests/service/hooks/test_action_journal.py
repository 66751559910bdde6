import hashlib
import json
import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.errors import ConfigurationError
from service.hooks.action_journal import Intent, Journal
from service.hooks.lease_parser import request_to_json
from service.hooks.request import Failed, Settled
from tests.service.frozen_clock import FrozenClock
from tests.service.hooks.sample_requests import NOW, request


def intent(request_id: str = "r1", **changes: object) -> Intent:
    wanted = request(request_id=request_id)
    plain: dict[str, object] = {
        "request_id": request_id,
        "kind": "slurm",
        "cluster": "lab",
        "job_id": "7",
        "lease_token": "t",
        "state": "intended",
        "at": NOW,
        "good_until": NOW + timedelta(minutes=2),
        "request": request_to_json(wanted),
    }
    return Intent(**(plain | changes))  # type: ignore[arg-type]


def journal(folder: Path, kind: str = "slurm") -> Journal:
    return Journal(folder, kind, FrozenClock(NOW))


@pytest.mark.parametrize(
    "made",
    [
        intent(),
        intent(state="acted", outcome=Settled("done", "requeued", "8")),
        intent(state="acted", outcome=Failed("later", 60.0)),
        intent(state="reported", outcome=Settled("unknown", "")),
    ],
)
def test_entries_are_read_again_after_a_restart(tmp_path: Path, made: Intent) -> None:
    first = journal(tmp_path)
    first.write(made)
    first.close()
    second = journal(tmp_path)
    assert second.get("r1") == made
    result = made.state == "reported"
    assert second.all() == ([] if result else [made])
    [path] = tmp_path.rglob("r1.json")
    assert path.stat().st_mode & 0o077 == 0  # it holds the lease's token
    second.close()


def test_an_entry_is_on_disk_before_the_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def noted(number: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{number}").readlink()))
        real(number)

    monkeypatch.setattr("os.fsync", noted)
    one = journal(tmp_path)
    one.write(intent())
    assert synced[0] == str(tmp_path / "r1.tmp")
    assert str(tmp_path) in synced[1:]
    one.close()


@pytest.mark.parametrize("change", ["cut", "flipped", "foreign", "other hook", "renamed", "empty"])
def test_a_changed_file_is_set_aside_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    one = journal(tmp_path)
    one.write(intent(kind="command" if change == "other hook" else "slurm"))
    path = tmp_path / "r1.json"
    content = path.read_bytes()
    if change == "renamed":
        path = path.rename(tmp_path / "r2.json")
    changed = {
        "cut": content[:-20],
        "flipped": content.replace(b"intended", b"acted"),
        "foreign": b'{"hello": 1}\n',
        "empty": b"",
    }
    path.write_bytes(changed.get(change, content))
    with caplog.at_level(logging.ERROR):
        assert one.get(path.stem) is None
    assert path.name in caplog.text
    assert not path.exists()
    assert (tmp_path / "set-aside" / path.name).read_bytes() == changed.get(change, content)
    assert one.is_set_aside(path.stem)
    assert not one.is_set_aside("r9")
    assert one.all() == []
    one.close()


def test_a_file_that_was_never_renamed_is_no_intent(tmp_path: Path) -> None:
    (tmp_path / "r1.tmp").write_bytes(b"half")
    one = journal(tmp_path)
    assert one.get("r1") is None
    assert not one.is_set_aside("r1")
    one.close()


def test_a_folder_that_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    """An entry of somebody else would be carried out: it asks for no consent, and names any job."""
    folder = tmp_path / "journal"
    journal(folder).close()
    folder.chmod(0o777)
    with pytest.raises(ConfigurationError, match="not everybody may write to"):
        journal(folder)
    folder.chmod(0o770)
    journal(folder).close()
    if os.geteuid() == 0:
        os.chown(folder, 12_345, -1)
        with pytest.raises(ConfigurationError, match="of this user"):
            journal(folder)


def test_two_hooks_in_one_folder_are_refused(tmp_path: Path) -> None:
    one = journal(tmp_path)
    with pytest.raises(ConfigurationError, match="folder of its own"):
        journal(tmp_path)
    one.close()
    journal(tmp_path).close()


def test_reported_results_are_kept_for_some_days(tmp_path: Path) -> None:
    clock = FrozenClock(datetime.now(UTC))
    one = Journal(tmp_path, "slurm", clock)
    one.write(intent("done", state="acted", outcome=Settled("done", "")))
    one.write(intent("done", state="reported", outcome=Settled("done", "")))
    one.write(intent("open"))
    one.prune()
    assert [known.request_id for known in one.all()] == ["open"]
    assert one.get("done") is not None
    clock.sleep(timedelta(days=8).total_seconds())
    one.prune()
    assert one.get("done") is None
    assert one.get("open") is not None
    one.forget("open")
    assert one.get("open") is None
    one.close()


def as_earlier_versions_wrote(path: Path) -> bytes:
    """The file of a reported request with the former name of its state."""
    envelope = json.loads(path.read_bytes())
    text = envelope["intent"].replace('"state": "reported"', '"state": "told"')
    assert text != envelope["intent"]
    return json.dumps({**envelope, "intent": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}).encode()


def test_reported_results_of_earlier_versions_are_still_known(tmp_path: Path) -> None:
    made = intent(state="reported", outcome=Settled("done", "requeued", "8"))
    one = journal(tmp_path)
    one.write(made)
    one.close()
    [path] = (tmp_path / "reported").iterdir()
    content = as_earlier_versions_wrote(path)
    path.unlink()
    (tmp_path / "reported").rmdir()
    (tmp_path / "told").mkdir()
    (tmp_path / "told" / "r1.json").write_bytes(content)
    (tmp_path / "told" / "r2.tmp").write_bytes(b"half")
    again = journal(tmp_path)
    assert again.get("r1") == made
    assert not again.is_set_aside("r1")
    assert not (tmp_path / "told").exists()
    again.forget("r1")
    assert again.get("r1") is None
    again.close()
