from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import ConfigurationError
from service.watch import watch_state as states
from service.watch.watch_state import Running, State
from tests.service.watch.objects import NOW


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    state = State("lab", {"jobs|*": "7"}, {"u": Running("Job", "ml", "train", "jobs|*")})
    state.remember(["a", "b"])
    states.save(path, state, NOW)
    assert states.load(path, "lab") == state
    assert state.at == NOW
    assert [one.name for one in tmp_path.iterdir()] == ["watch.json"]


def test_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    state = State("lab", {"jobs|*": "7"})
    state.remember(["a", "b"])
    states.save(path, state, NOW)
    stored = orjson.loads(path.read_bytes())
    stored["told"] = stored.pop("sent")
    path.write_bytes(orjson.dumps(stored))
    assert states.load(path, "lab") == state


def test_without_a_file_all_is_new(tmp_path: Path) -> None:
    assert states.load(tmp_path / "none", "lab") == State("lab")


def test_another_cluster_s_file_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    states.save(path, State("lab"), NOW)
    with pytest.raises(ConfigurationError, match="expected the state of cluster other, got that of lab"):
        states.load(path, "other")


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be written"):
        states.save(tmp_path / "no" / "watch.json", State("lab"), NOW)


def test_only_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "SENT_MOST", 3)
    state = State("lab")
    state.remember("abcde")
    assert list(state.sent_ids) == ["c", "d", "e"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "other"}', b'{"format": "faultline-watch/1"}'])
def test_a_file_that_is_not_a_state_is_kept_under_another_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "watch.json"
    path.write_bytes(content)
    assert states.load(path, "lab") == State("lab")
    assert path.with_suffix(".json.unusable").read_bytes() == content


@given(st.binary(max_size=200))
def test_no_file_makes_it_crash(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("state") / "watch.json"
    path.write_bytes(content)
    assert states.load(path, "lab") == State("lab")
