"""A label of an event alone never makes a hook act: the policy trusts its source, and the scheduler confirms it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from service.automation.service import Automation
from service.formats import recognise
from service.logs.fetch import LogFetcher
from service.messaging.batching import read
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import event_facts, policy
from tests.service.pipeline.diagnosis import diagnose_with
from tests.service.web.world import ByWord, event, lines, make_world

AUTO = {"faultline/resubmit": "auto"}
XID = [{"rank": 0, "node": "gpu018", "stream": "stderr", "tail": "NVRM: Xid 79 GPU has fallen off the bus"}]


@pytest.mark.parametrize(
    ("sources", "mode"), [('["*"]', "auto"), ('["topic/*"]', "shadow"), ('["api/epilog"]', "auto"), ("[]", "shadow")]
)
def test_a_label_counts_only_from_a_source_that_the_policy_trusts(
    new_database: Callable[[], str], tmp_path: Path, sources: str, mode: str
) -> None:
    own = policy.parse(f'version = "own"\n[opt_in]\nlabel_sources = {sources}\n')
    url = new_database()
    world = make_world(tmp_path, url)
    automation = Automation(world.store, own, world.clock, world.services.telemetry)
    diagnose = diagnose_with(
        DiagnosisTools(
            world.store, LogFetcher(()), ByWord(), own, world.clock, world.services.telemetry, automation=automation
        )
    )
    diagnosing = world.store
    world = make_world(tmp_path, url, ingest=diagnose, automation=automation)
    sent = event("1", labels=AUTO, logs=XID, user=None, intake_source="topic/forged")
    with world.client(world.token("ingest", "read", "act", name="epilog")) as client:
        assert client.post("/api/v1/events", content=lines(sent)).json()["accepted"] == 1
        # The same event from a topic is a duplicate, not a conflict: where it came from is not part of its content.
        again = read(recognise.parse, lines(sent), source="topic/jobs")
        assert diagnose([again]).events[0].kind == "duplicate"  # type: ignore[list-item]
        [request] = client.get("/api/v1/resubmissions").json()["items"]
        leases = client.post("/api/v1/resubmissions:lease", json={"hook": "h", "cluster": "orion"}).json()
    assert [lease["ask_scheduler"] for lease in leases] == ([True] if mode == "auto" else [])
    assert (request["state"] == "shadow") is (mode == "shadow")
    world.store.close()
    diagnosing.close()


def test_caution_counts_from_every_source() -> None:
    own = policy.parse('version = "own"\n[opt_in]\ndefault = "auto"\nlabel_sources = []\n')
    assert event_facts.opt_in({"faultline/resubmit": "never"}, own, "api/x").mode == "never"
    assert event_facts.opt_in({"faultline/resubmit": "advise"}, own, "api/x").mode == "advise"
    assert event_facts.opt_in({"faultline/resubmit": "AUTO "}, own, "api/x").mode == "auto"  # of the policy
    assert not event_facts.opt_in({"faultline/resubmit": "AUTO "}, own, "api/x").confirmed_by_hook
