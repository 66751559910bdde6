"""`faultline feedback` against the real API on loopback, with a token of the job's team."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.__main__ import main
from service.cli.exit_codes import FAILED, OK, USAGE
from service.db.session import Store
from service.feedback.records import Label, NewFeedback
from service.feedback.service import VOTES_AN_HOUR
from service.setting_texts import CLIENT_TOKEN_FILE, CLIENT_URL
from tests.service.web.live import serving
from tests.service.web.world import World, event, lines, make_world


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, str]]:
    """Failed jobs of two teams, one of them with an id that two clusters use, and the address of the service."""
    world = make_world(tmp_path_factory.mktemp("feedback"))
    with world.client() as client:
        jobs = [event("mine", team="nlp"), event("theirs", team="vision")]
        jobs += [event("both", team="nlp"), event("both", team="nlp", cluster="vega")]
        assert client.post("/api/v1/events", content=lines(*jobs)).status_code in {200, 202}
    with serving(world.app) as url:
        yield world, url
    world.store.close()


@pytest.fixture
def token(live: tuple[World, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a token of the team nlp, which the command finds by itself."""
    world, url = live
    path = tmp_path / "token"
    path.write_text(world.token("read", name=tmp_path.name, teams=("nlp",)) + "\n")
    monkeypatch.setenv(CLIENT_URL, url)
    monkeypatch.setenv(CLIENT_TOKEN_FILE, str(path))
    return path


def label(store: Store, job: str) -> Label | None:
    with store.reading() as reading:
        [number] = [row.id for row in reading.failures.page(limit=50).items if row.job_id == job]
        return reading.feedback.label(number)


@pytest.mark.usefixtures("token")
def test_a_submitter_contests_a_verdict_and_names_the_cause_and_no_label_follows(
    live: tuple[World, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["feedback", "mine", "--wrong", "--cause", "SYS.5", "--note", "storage was down"]) == OK
    said = capsys.readouterr().out
    assert "the cause is SYS.5; an operator decides" in said
    assert "job mine on" in said
    found = label(live[0].store, "mine")
    assert found is not None
    assert (found.contested, found.labels.cause, found.people) == (True, None, 0), "a vote is no label"
    assert main(["feedback", "mine", "--right", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["vote"] == "agree"
    assert label(live[0].store, "mine") is None, "the last vote of a person counts"


@pytest.mark.usefixtures("token")
def test_a_job_of_another_team_is_not_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["feedback", "theirs", "--wrong"]) == FAILED
    assert "no failure of job theirs is visible with this token" in capsys.readouterr().err


@pytest.mark.usefixtures("token")
def test_a_job_id_of_two_clusters_needs_the_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["feedback", "both", "--right"]) == USAGE
    assert "--cluster: expected one of" in capsys.readouterr().err
    assert main(["feedback", "both", "--right", "--cluster", "vega"]) == OK


def test_votes_are_limited_by_person(live: tuple[World, str], token: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = live[0]
    with world.store.unit_of_work() as work:
        [number] = [row.id for row in work.failures.page(limit=50).items if row.job_id == "mine"]
        for _ in range(VOTES_AN_HOUR - 1):
            work.feedback.add(NewFeedback(number, token.parent.name, "agree", 1, "user", "USER.1"))
    assert main(["feedback", "mine", "--right"]) == OK
    assert main(["feedback", "mine", "--right"]) == FAILED
    assert f"gave {VOTES_AN_HOUR} votes in the last hour" in capsys.readouterr().err
    with world.client(world.token("read", name="another")) as client:
        assert client.post(f"/api/v1/failures/{number}/feedback", json={"kind": "agree"}).status_code == 200
        wrong = client.post(f"/api/v1/failures/{number}/feedback", json={"kind": "agree", "cause": "USER.4"})
        assert wrong.status_code == 422, "a person who agrees names nothing else"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--right", "--cause", "USER.4"], "--cause: expected --wrong"),
        (["--wrong", "--cause", "USER.99"], "--cause: expected one of"),
        (["--wrong", "--url", "ftp://x"], "--url: expected an address"),
        (["--wrong", "--url", "http://faultline.example"], "--url: expected https"),
        (["--wrong", "--token-file", "/none"], "--token-file: /none"),
    ],
)
@pytest.mark.usefixtures("token")
def test_a_wrong_option_is_named(given: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["feedback", "mine", *given]) == USAGE
    assert expected in capsys.readouterr().err


def test_a_service_that_does_not_answer_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["feedback", "mine", "--right", "--url", "http://127.0.0.1:1"]) == FAILED
    assert "127.0.0.1:1" in capsys.readouterr().err
