import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from pathlib import Path

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction import extractor
from classifiers.extraction.observations import registry
from classifiers.extraction.stream_reader import StreamText
from classifiers.model import artifact
from service.errors import ConfigurationError
from service.signatures.reloading_diagnoser import UNREADABLE, ReloadingDiagnoser
from service.signatures.signature_folder import POLL_S, SignatureFolder
from tests.classifiers.conftest import small_model
from tests.service.frozen_clock import FrozenClock
from tests.service.signatures.entries import LICENCE, QUOTA, write

NOW = datetime(2026, 11, 20, tzinfo=UTC)
LINE = "scratch: quota exceeded for user ana (2.1T of 2.0T)"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("model") / "model"
    artifact.save(small_model(), where)
    return where


def test_a_changed_folder_is_noticed_and_a_broken_one_keeps_the_former(
    tmp_path: Path, model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FrozenClock(NOW)
    folder = SignatureFolder(write(tmp_path, LICENCE), clock)
    diagnoser = ReloadingDiagnoser(model, folder)
    case = RawCase(JobFacts("failed"), (LogStream(f"{LINE}\n"),))

    def signature() -> str | None:
        clock.sleep(POLL_S)
        return diagnoser.diagnose([case])[0].evidence[0].signature

    rules = diagnoser.rules
    assert signature() == "cloud.provider-quota"
    write(tmp_path, LICENCE, QUOTA)
    assert diagnoser.diagnose([case])[0].evidence[0].signature == "cloud.provider-quota"  # not looked at again yet
    assert signature() == "site.scratch-quota"
    verdict = diagnoser.diagnose([case])[0]
    assert (verdict.side, verdict.cause) == ("user", "USER.2")
    assert diagnoser.rules == verdict.rules != rules

    write(tmp_path, QUOTA.replace('role = "initiating"', 'role = "first"'))
    with caplog.at_level(logging.ERROR):
        assert signature() == "site.scratch-quota"
        assert signature() == "site.scratch-quota"
    expected = (
        "FAULTLINE_SIGNATURES_DIR: site.toml: entry 1 (site.scratch-quota): role: expected one of initiating, cascade, "
        "teardown, context, got 'first'; the signatures read before stay in use"
    )
    assert [record.message for record in caplog.records if "site.toml" in record.message] == [expected]
    assert "role: expected" in (folder.current().problem or "")

    write(tmp_path, LICENCE)
    assert signature() == "cloud.provider-quota"
    assert folder.current().problem is None


def test_an_error_in_what_reads_a_log_costs_only_this_case_its_log(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def observations(job: JobFacts, streams: Sequence[StreamText], present: AbstractSet[str]) -> frozenset[str]:
        if any("2..0" in one.text for one in streams):
            raise ValueError("2..0")
        return registry.observations(job, streams, present)

    monkeypatch.setattr(extractor, "observations", observations)
    diagnoser = ReloadingDiagnoser(model, SignatureFolder(write(tmp_path, QUOTA), FrozenClock(NOW)))
    good, bad = (RawCase(JobFacts("failed", "17"), (LogStream(f"{LINE}{more}\n"),)) for more in ("", " 2..0"))
    verdicts = diagnoser.diagnose([good, bad, good])
    assert [one.evidence[0].signature for one in verdicts[::2]] == ["site.scratch-quota"] * 2
    assert verdicts[1].missing == (f"logs and node events: {UNREADABLE} (ValueError)",)
    assert all(one.stream == "scheduler" for one in verdicts[1].evidence)
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2


@pytest.mark.parametrize("nested", ["a = " + "[" * 50_000, "a = " + "{a=" * 40_000, "a." * 50_000 + "a = 1"])
def test_a_nested_file_keeps_the_former_too(tmp_path: Path, nested: str) -> None:
    """Else no event was classified until somebody removed the file: each became a dead letter."""
    clock = FrozenClock(NOW)
    folder = SignatureFolder(write(tmp_path, LICENCE), clock)
    own = folder.current().layered.own
    (tmp_path / "site.toml").write_text(nested)
    clock.sleep(POLL_S)
    assert folder.current().layered.own == own
    assert "not TOML" in (folder.current().problem or "")


def test_a_removed_folder_keeps_the_former(tmp_path: Path) -> None:
    clock = FrozenClock(NOW)
    folder = SignatureFolder(write(tmp_path / "own", QUOTA), clock)
    (tmp_path / "own" / "site.toml").unlink()
    (tmp_path / "own").rmdir()
    clock.sleep(POLL_S)
    assert "no such folder" in (folder.current().problem or "")
    assert set(folder.current().layered.own) == {"site.scratch-quota"}
    write(tmp_path / "own", LICENCE)
    clock.sleep(POLL_S)
    assert set(folder.current().layered.own) == {"site.licence-server"}


def test_a_folder_that_comes_back_unchanged_is_in_use_again(tmp_path: Path) -> None:
    clock = FrozenClock(NOW)
    folder = SignatureFolder(write(tmp_path / "own", QUOTA), clock)
    (tmp_path / "own").rename(tmp_path / "away")
    clock.sleep(POLL_S)
    assert "no such folder" in (folder.current().problem or "")
    (tmp_path / "away").rename(tmp_path / "own")
    clock.sleep(POLL_S)
    assert folder.current().problem is None


def test_a_wrong_file_stops_the_start(tmp_path: Path) -> None:
    write(tmp_path, QUOTA.replace("label = ", "lable = "))
    with pytest.raises(ConfigurationError, match=r"FAULTLINE_SIGNATURES_DIR: site\.toml: entry 1 .*label"):
        SignatureFolder(tmp_path, FrozenClock(NOW))
