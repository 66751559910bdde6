"""Which line or node event a verdict shows as the beginning: fitted on labelled first lines, among the candidates."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase, Suspect
from classifiers.data.labelled_cases import LabelledCase, Labels
from classifiers.diagnoser import Diagnoser
from classifiers.explanation.chain import chain_of
from classifiers.extraction.evidence_items import ExtractedCase
from classifiers.model import beginnings, constants
from classifiers.model.artifact import Model
from classifiers.model.beginnings import BY_RULES, Beginnings, Candidates, candidates, with_beginning
from classifiers.model.label_fusion import FusedLabels
from classifiers.model.line_weights import EQUAL
from tests.classifiers.packaged_catalogue import EXTRACTOR

AT: Final = datetime(2026, 3, 2, 10, tzinfo=UTC)
LABELS: Final = FusedLabels("user", (("USER.1", 0.9),), "none", (("none", 0.9),), "futile", (), None)
VALVE, PUMP = "ValveError: the valve is stuck", "PumpError: the pump is dry"
LINK_DOWN: Final = "mlx5_core 0000:3b:00.0 eth2: Link down"
EVENT: Final = NodeEvent(text=LINK_DOWN, node="gpu-1", at=AT, source="kernel")


class Reader:
    """Reads evidence as the service does, and gives every case the same labels."""

    def candidates_and_labels(self, cases: Sequence[LabelledCase]) -> list[tuple[Candidates, FusedLabels]]:
        return [(candidates(EXTRACTOR.extract(case.raw)), LABELS) for case in cases]


def _raw(lines: Sequence[str], events: Sequence[NodeEvent] = (EVENT,)) -> RawCase:
    job = JobFacts(status="failed", started_at=datetime(2026, 3, 2, 9, tzinfo=UTC), ended_at=AT, nodes=("gpu-1",))
    return RawCase(job=job, streams=(LogStream(text="\n".join(lines), node="gpu-1"),), node_events=tuple(events))


def _case(number: int, lines: Sequence[str], root: str, medium: str = "log") -> LabelledCase:
    labels = Labels(best={}, allowed={}, root_line=root)
    return LabelledCase(f"case-{number}", "g", f"kind-{number}", _raw(lines), labels, {"medium": medium})


def _shown(lines: Sequence[str], chosen: Beginnings, events: Sequence[NodeEvent] = (EVENT,)) -> ExtractedCase:
    raw = _raw(lines, events)
    extracted = EXTRACTOR.extract(raw)
    return with_beginning(extracted, chosen.choice(extracted, LABELS, EQUAL).leading, raw)


@pytest.fixture(scope="module")
def fitted() -> Beginnings:
    """Of cases whose valve fails first, whatever is printed first."""
    orders = [(VALVE, PUMP), (PUMP, VALVE)] * 6
    return beginnings.fit(Reader(), [_case(number, lines, VALVE) for number, lines in enumerate(orders)], EQUAL)


@pytest.mark.parametrize("lines", [(VALVE, PUMP), (PUMP, VALVE)])
def test_what_cases_began_with_is_shown_as_the_beginning(fitted: Beginnings, lines: Sequence[str]) -> None:
    shown = _shown(lines, fitted)
    assert shown.case.evidence[0].text == VALVE
    assert shown.case.evidence[0].role == "initiating"
    assert [item.text for item in shown.items] == [line.text for line in shown.case.evidence[: len(shown.items)]]


def test_without_labelled_lines_the_rules_choose() -> None:
    cases = [_case(1, (PUMP, VALVE), VALVE, medium="report"), _case(2, (VALVE,), VALVE)]
    assert beginnings.fit(Reader(), cases, EQUAL) == BY_RULES
    assert _shown((PUMP, VALVE), BY_RULES).case.evidence[0].text == PUMP


def test_a_small_lead_leaves_the_order_of_the_rules() -> None:
    just, more = (
        Beginnings({"word valve": (constants.BEGINNING_MARGIN + extra) / constants.BEGINNING_WORD_VALUE})
        for extra in (-0.1, 0.1)
    )
    assert _shown((PUMP, VALVE), just).case.evidence[0].text == PUMP
    assert _shown((PUMP, VALVE), more).case.evidence[0].text == VALVE


def test_a_node_event_that_was_set_aside_may_be_the_beginning() -> None:
    extracted = EXTRACTOR.extract(_raw([VALVE]))
    assert [item.text for item in extracted.set_aside] == [LINK_DOWN]
    shown = _shown([VALVE], Beginnings({"word link": 20.0}))
    first, second = shown.case.evidence[:2]
    assert (first.text, first.role, first.note) == (LINK_DOWN, "initiating", None)
    assert (second.text, second.role) == (VALVE, "initiating")
    assert not any(line.note for line in shown.case.evidence)
    assert extracted.case.evidence[0].text == VALVE  # what was extracted stays as it is


def test_an_event_that_was_set_aside_is_no_beginning_where_the_rules_know_none() -> None:
    down, up = AT - timedelta(minutes=40), AT - timedelta(minutes=39)
    events = replace(EVENT, at=down), NodeEvent(LINK_DOWN.replace("down", "up"), up, "gpu-1", "kernel")
    extracted = EXTRACTOR.extract(_raw([], events))
    assert LINK_DOWN in [item.text for item in extracted.set_aside]
    assert not any(item.role == "initiating" for item in extracted.items)
    assert Beginnings({"word link": 20.0}).choice(extracted, LABELS, EQUAL).leading is None


def _two_nodes(event: NodeEvent) -> RawCase:
    """Rank 0 on gpu-1 reports the failure, and an event is of some node."""
    job = JobFacts(status="failed", started_at=AT.replace(hour=9), ended_at=AT, nodes=("gpu-1", "gpu-2"), gpus=2)
    texts = (f"[rank0]: {VALVE}", "step 10 loss 2.5")
    streams = tuple(LogStream(text=text, rank=rank, node=f"gpu-{rank + 1}") for rank, text in enumerate(texts))
    return RawCase(job=job, streams=streams, node_events=(event,))


@pytest.mark.parametrize(
    ("node", "text", "expected"),
    [
        ("gpu-1", LINK_DOWN, Suspect(rank=0, node="gpu-1")),
        ("gpu-2", LINK_DOWN, Suspect(rank=1, node="gpu-2")),
        (None, f"switch: {LINK_DOWN} to gpu-2", Suspect(rank=1, node="gpu-2")),
        (None, LINK_DOWN, Suspect(rank=0, node="gpu-1")),
    ],
)
def test_the_suspected_node_is_that_of_the_event_which_is_shown_as_the_beginning(
    model: Model, node: str | None, text: str, expected: Suspect
) -> None:
    raw = _two_nodes(NodeEvent(text=text, node=node, at=AT, source="kernel"))
    chosen = Diagnoser(replace(model, beginnings=Beginnings({"word link": 20.0})), signatures.packaged())
    by_rules = Diagnoser(replace(model, beginnings=BY_RULES), signatures.packaged())
    [verdict] = chosen.diagnose([raw])
    assert verdict.evidence[0].text == text
    assert verdict.suspect == expected
    assert by_rules.diagnose([raw])[0].suspect == Suspect(rank=0, node="gpu-1")


def test_an_event_of_a_node_that_the_job_does_not_name_suspects_none_of_its_nodes() -> None:
    raw = _two_nodes(NodeEvent(text=LINK_DOWN, node="gpu-9", at=AT, source="kernel"))
    extracted = EXTRACTOR.extract(raw)
    [event] = extracted.set_aside
    assert extracted.case.suspect == Suspect(rank=0, node="gpu-1")
    assert with_beginning(extracted, event, raw).case.suspect == Suspect(rank=0)


def test_a_line_that_is_shown_as_the_beginning_is_no_consequence_of_itself() -> None:
    lost = "BrokenPipeError: [Errno 32] Broken pipe"
    streams = (LogStream(VALVE, rank=0), *(LogStream(f"{lost}\n{lost}", rank=rank) for rank in (1, 2)))
    raw = RawCase(JobFacts("failed", gpus=3), streams)
    extracted = EXTRACTOR.extract(raw)
    leading = next(item for item in extracted.items if item.rank == 1)
    assert leading.role == "cascade"
    first, *others = chain_of(with_beginning(extracted, leading, raw))
    assert (first.kind, first.text, first.rank) == ("beginning", lost, 1)
    [other] = [step for step in others if step.kind == "consequence"]
    assert (other.rank, other.ranks) == (2, 1)


def test_few_other_beginnings_stay_beside_a_chosen_one() -> None:
    lines = [f"[rank{rank}]: {name}Error: the part is broken" for rank, name in enumerate(("Pump", "Gate", "Tap"))]
    shown = _shown([*lines, f"[rank3]: {VALVE}"], Beginnings({"word valve": 20.0}))
    roles = [line.role for line in shown.case.evidence if "Error" in line.text]
    assert roles.count("initiating") <= 1 + constants.BEGINNINGS_BESIDE
    assert VALVE in shown.case.evidence[0].text


def test_without_a_node_event_the_rules_choose(fitted: Beginnings) -> None:
    assert _shown((PUMP, VALVE), fitted).case.evidence[0].text == VALVE
    assert _shown((PUMP, VALVE), fitted, events=()).case.evidence[0].text == PUMP


def test_events_of_other_nodes_and_of_after_the_failure_are_never_the_beginning() -> None:
    other = replace(EVENT, node="gpu-9")
    later = replace(EVENT, at=AT + timedelta(minutes=9))
    for event in (other, later):
        shown = _shown([VALVE], Beginnings({"word link": 20.0}), events=(event,))
        assert shown.case.evidence[0].text == VALVE


def test_lines_of_progress_are_no_candidates() -> None:
    extracted = EXTRACTOR.extract(_raw(["step 10 loss 2.5", "step 20 loss 2.4", VALVE]))
    found = [item.text for item in candidates(extracted).found]
    assert found[:1] == [VALVE]
    assert not any("loss" in text for text in found)


def test_the_choice_changes_what_is_shown_and_no_label(model: Model) -> None:
    by_rules, chosen = (
        Diagnoser(replace(model, beginnings=one), signatures.packaged()).diagnose([_raw([VALVE])])[0]
        for one in (BY_RULES, Beginnings({"word link": 20.0}))
    )
    assert by_rules.evidence[0].text == VALVE
    assert chosen.evidence[0].text == chosen.chain[0].text == LINK_DOWN
    assert LINK_DOWN in chosen.explanation
    assert chosen.confidence < by_rules.confidence  # the event speaks for another side
    for name in ("side", "cause", "category", "symptom", "retry_outlook", "fingerprint"):
        assert getattr(chosen, name) == getattr(by_rules, name)
