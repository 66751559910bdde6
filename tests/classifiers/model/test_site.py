import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from classifiers import signatures
from classifiers.contracts import Verdict
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.model.artifact import Model
from classifiers.model.site import fitting
from classifiers.model.site import layer as layers
from classifiers.model.site.fitting import SiteFit
from classifiers.model.site.label_groups import is_random_sample
from classifiers.model.site.layer import SiteLayer, SiteLayerError

NOW = datetime(2026, 11, 22, tzinfo=UTC)
XID = "kernel: NVRM: Xid (PCI:0000:0f:00): 79, GPU has fallen off the bus"
LICENCE = "flexnet: no seat left on licence server lic{n} for feature solver-pro, giving up"


def case(name: str, line: str, labels: Mapping[str, str | None], who: str = "ana", **provenance: Any) -> LabelledCase:
    return labelled_cases.parse(
        {
            "id": name,
            "group": name.rstrip("0123456789"),
            "kind": name.rstrip("0123456789"),
            "event": {"status": "failed", "gpus": 1, "logs": [{"rank": 0, "tail": f"step 10 loss 2.1\n{line}\n"}]},
            "labels": {axis: labels.get(axis) for axis in ("side", "cause", "category", "symptom", "retry")},
            "provenance": {"origin": "operator", "who": who, **provenance},
        },
        "test",
    )


def fitted(model: Model, *cases: LabelledCase) -> SiteFit:
    return fitting.fit(model, signatures.packaged(), cases, now=NOW)


def verdict(model: Model, line: str, layer: SiteLayer | None = None) -> Verdict:
    raw = case("new", line, {"side": "user"}).raw
    return Diagnoser(model, signatures.packaged(), layer).diagnose([raw])[0]


SYSTEM = {"side": "system", "cause": "SYS.5", "retry": "helps"}


def test_without_labels_verdicts_stay_the_same(model: Model, cases: list[LabelledCase]) -> None:
    empty = fitted(model).layer
    raws = [one.raw for one in cases]
    plain = Diagnoser(model, signatures.packaged())
    with_layer = Diagnoser(model, signatures.packaged(), empty)
    assert [asdict(one) for one in plain.diagnose(raws)] == [asdict(one) for one in with_layer.diagnose(raws)]


def test_two_layers_that_share_what_is_read_give_the_verdicts_that_each_gives_alone(
    model: Model, cases: list[LabelledCase]
) -> None:
    layer = fitted(model, case("licence", LICENCE.format(n=1), SYSTEM)).layer
    raws = [case("new", LICENCE.format(n=47), {"side": "user"}).raw, *(one.raw for one in cases[::7])]
    plain = Diagnoser(model, signatures.packaged())
    before, after = plain.diagnose_as(plain.with_layer(layer), raws)
    assert before == Diagnoser(model, signatures.packaged()).diagnose(raws)
    assert after == Diagnoser(model, signatures.packaged(), layer).diagnose(raws)
    assert (before[0].cause, after[0].cause) != (after[0].cause, after[0].cause)
    assert plain.diagnose_as(plain.with_layer(layer), []) == ([], [])


def test_a_recurrence_takes_the_label_with_other_hosts_and_numbers(model: Model) -> None:
    layer = fitted(model, case("licence", LICENCE.format(n=1), {**SYSTEM, "retry": "after_repair"})).layer
    found = verdict(model, LICENCE.format(n=47), layer)
    assert (found.side, found.cause, found.abstained) == ("system", "SYS.5", False)
    assert found.model.endswith(layer.id)


def test_a_group_keeps_its_fingerprint(model: Model) -> None:
    layer = fitted(model, case("licence", LICENCE.format(n=1), SYSTEM)).layer
    line = LICENCE.format(n=3)
    assert verdict(model, line, layer).fingerprint == verdict(model, line).fingerprint


def test_one_label_does_not_overrule_a_decisive_signature_but_two_people_do(model: Model) -> None:
    wrong = {"side": "user", "cause": "USER.1", "retry": "futile"}
    before = verdict(model, XID)
    alone = fitted(model, *(case(f"xid{n}", XID, wrong) for n in range(30))).layer
    assert verdict(model, XID, alone).side == before.side == "hardware"
    assert verdict(model, XID, alone).retry_outlook == before.retry_outlook
    both = fitted(model, case("xid1", XID, wrong), case("xid2", XID, wrong, who="ben")).layer
    assert verdict(model, XID, both).side == "user"


def test_one_label_moves_a_decisive_signature_within_the_platform_and_keeps_its_retry_outlook(model: Model) -> None:
    before = verdict(model, XID)
    alone = fitted(model, case("xid1", XID, {"side": "system", "cause": "SYS.3", "retry": "futile"})).layer
    after = verdict(model, XID, alone)
    assert (after.side, after.cause, after.retry_outlook) == ("system", "SYS.3", before.retry_outlook)
    assert before.retry_outlook == "helps_elsewhere"


def test_a_program_that_ends_without_a_word_is_recognised_by_its_last_lines_and_how_it_ended(model: Model) -> None:
    def ended(name: str, last: str, how: str) -> LabelledCase:
        return case(name, f"embedding the tiles of slide {last}\n{how}", {"side": "system", "cause": "SYS.2"})

    layer = fitted(model, ended("full", "1203 of 4820", "Bus error")).layer
    known = Diagnoser(model, signatures.packaged(), layer)
    plain = Diagnoser(model, signatures.packaged())
    again, by_other_signal = ended("new", "2711 of 4820", "Bus error").raw, ended("new", "2711 of 4820", "Killed").raw
    other = case("new", "shuffling part 1203 of 4820\nBus error", {"side": "user"}).raw
    assert known.diagnose([again])[0].cause == "SYS.2" != plain.diagnose([again])[0].cause
    for one in (by_other_signal, other):
        assert known.diagnose([one])[0].cause == plain.diagnose([one])[0].cause


def test_one_label_does_not_turn_a_futile_failure_into_one_that_is_resubmitted(model: Model) -> None:
    line = "KeyError: 'lr_107'"
    assert verdict(model, line).retry_outlook == "futile"
    alone = fitted(model, case("key", line, SYSTEM)).layer
    assert verdict(model, line, alone).retry_outlook == "futile"
    both = fitted(model, case("key1", line, SYSTEM), case("key2", line, SYSTEM, who="ben")).layer
    assert verdict(model, line, both).retry_outlook == "helps"


def test_contradicting_labels_of_a_group_cancel_each_other(model: Model) -> None:
    line = LICENCE.format(n=1)
    made = fitted(
        model,
        case("one1", line, SYSTEM),
        case("two2", line, {"side": "user", "cause": "USER.1", "retry": "futile"}, who="ben"),
    )
    assert set(made.conflicts) == {"one1", "two2"}
    assert verdict(model, line, made.layer).cause == verdict(model, line).cause


def test_a_flood_of_duplicates_counts_as_one_group(model: Model) -> None:
    made = fitted(model, *(case(f"licence{n}", LICENCE.format(n=n), SYSTEM) for n in range(200)))
    assert made.layer.about["groups"] == 1
    assert not made.layer.corrects


def test_a_label_does_not_reach_other_failures_of_one_catalogue_entry(model: Model) -> None:
    labelled = "OSError: cannot write checkpoint {n} to scratch tier: No space left on device"
    other = "OSError: shard writer gave up, No space left on device"
    layer = fitted(model, case("full", labelled.format(n=1), {"side": "user", "cause": "USER.1"})).layer
    assert verdict(model, other).fingerprint == verdict(model, labelled.format(n=2)).fingerprint
    assert verdict(model, labelled.format(n=2), layer).side == "user"
    assert verdict(model, other, layer).side == verdict(model, other).side == "system"


def test_a_label_does_not_reach_other_failures_by_what_a_launcher_reports(model: Model) -> None:
    ended = "\nsrun: error: gpu012: task 0: Exited with exit code 1"
    line = "gpu012 gridwarden: volume token of tenant {n} lapsed while mounting pool"
    other = "vaultling: the table of leases for the corpus is not open any longer"
    labels = {"side": "system", "cause": "SYS.5"}
    layer = fitted(model, case("token", line.format(n=4711) + ended, labels)).layer
    alone, before = (verdict(model, other + ended, one) for one in (layer, None))
    assert (alone.side, alone.cause, alone.confidence) == (before.side, before.cause, before.confidence)
    assert verdict(model, line.format(n=93) + ended, layer).cause == "SYS.5"


@pytest.mark.parametrize(
    "ended",
    [
        "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.",
        "make: *** [Makefile:12: train] Error 1",
        "Segmentation fault (core dumped)",
        "run.sh: line 3:  4711 Killed                  python train.py",
        "Killed",
        "Exiting because a job execution failed. Look above for error message",
        "slurmstepd: error: *** JOB 4711 ON gpu012 CANCELLED AT 2026-11-20T10:00:00 DUE TO TIME LIMIT ***",
        "=>> PBS: job killed: walltime 86401 exceeded limit 86400",
    ],
)
def test_a_label_does_not_reach_other_failures_by_what_reports_the_end_of_a_process(model: Model, ended: str) -> None:
    line = "gridwarden: volume token of tenant {n} lapsed while mounting pool"
    other = "vaultling: the table of leases for the corpus is not open any longer"
    layer = fitted(model, case("token", f"{line.format(n=4711)}\n{ended}", {"side": "system", "cause": "SYS.5"})).layer
    alone, before = (verdict(model, f"{other}\n{ended}", one) for one in (layer, None))
    assert (alone.side, alone.cause, alone.confidence) == (before.side, before.cause, before.confidence)
    assert verdict(model, f"{line.format(n=93)}\n{ended}", layer).cause == "SYS.5"
    assert verdict(model, f"starting\n{ended}", layer).cause == verdict(model, f"starting\n{ended}").cause


def test_a_label_does_not_reach_other_failures_by_the_scheduler_s_time_limit(model: Model) -> None:
    ended = "slurmstepd: error: *** JOB 4711 ON gpu012 CANCELLED AT 2026-11-20T10:00:00 DUE TO TIME LIMIT ***"

    def waiting(name: str, line: str) -> LabelledCase:
        one = case(name, f"{line}\n{ended}", {"side": "system", "cause": "SYS.5"})
        return replace(one, raw=replace(one.raw, job=replace(one.raw.job, status="timeout", reason="TimeLimit")))

    line = "gridwarden: volume token of tenant {n} lapsed while mounting pool"
    layer = fitted(model, waiting("token", line.format(n=4711))).layer
    other = waiting("other", "vaultling: the table of leases for the corpus is not open any longer").raw
    after, before = (Diagnoser(model, signatures.packaged(), one).diagnose([other])[0] for one in (layer, None))
    assert (after.side, after.cause, after.confidence) == (before.side, before.cause, before.confidence)
    again = waiting("again", line.format(n=93)).raw
    assert Diagnoser(model, signatures.packaged(), layer).diagnose([again])[0].cause == "SYS.5"


def test_an_error_that_a_build_tool_states_itself_is_recognised(model: Model) -> None:
    line = "make: *** No rule to make target 'shards/{n}.tar', needed by 'corpus'.  Stop."
    layer = fitted(model, case("rule", line.format(n=4711), {"side": "system", "cause": "SYS.5"})).layer
    assert verdict(model, line.format(n=93), layer).cause == "SYS.5"


def test_hosts_of_another_naming_scheme_are_recognised(model: Model) -> None:
    line = "{host} gridwarden: volume token of tenant 4711 lapsed while mounting pool"
    layer = fitted(model, case("token", line.format(host="gpu012"), {"side": "system", "cause": "SYS.5"})).layer
    raw = case("new", line.format(host="dgx-a7"), {"side": "user"}).raw
    raw = replace(raw, job=replace(raw.job, nodes=("dgx-a7.example.org",)))
    assert Diagnoser(model, signatures.packaged(), layer).diagnose([raw])[0].cause == "SYS.5"


def test_a_line_alone_does_not_overrule_a_confident_verdict_but_two_people_do(model: Model) -> None:
    limit = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED DUE TO TIME LIMIT ***"
    labels = {"side": "hardware", "cause": "HW.NODE.1", "retry": "helps_elsewhere"}
    lost = f"srun: error: Node failure on gpu7\n{limit}"
    alone = fitted(model, case("node1", lost, labels)).layer
    both = fitted(model, case("node1", lost, labels), case("node2", lost, labels, who="ben")).layer
    assert verdict(model, limit, alone).side == verdict(model, limit).side == "user"
    assert verdict(model, lost, alone).side == "hardware"
    assert verdict(model, limit, both).side == "hardware"


def test_a_line_alone_does_not_overrule_by_a_failure_whose_words_are_not_stored(model: Model) -> None:
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
    lost = f"RuntimeError: elastic agent lost the rendezvous quorum of this training run entirely\n{line}"
    layer = fitted(model, case("node1", lost, {"side": "hardware", "cause": "HW.NODE.1"})).layer
    assert verdict(model, line, layer).side == "hardware", "the whole failure is like the labelled one"
    among_very_many = replace(layer, support=())
    assert verdict(model, line, among_very_many).side == verdict(model, line).side == "user"
    assert verdict(model, lost, among_very_many).side == "hardware"


def quota_labels(**provenance: Any) -> list[LabelledCase]:
    """Labels of 36 groups of a site's own failure, which a model takes for the program's mistake."""
    first, second = "alpha beta gamma delta epsilon zeta eta theta iota", "lambda mu omicron sigma"
    cases = [
        case(
            f"{a}{number}x", f"RuntimeError: CUDA out of memory by quota of {a} {b} tenant budget", SYSTEM, **provenance
        )
        for number, (a, b) in enumerate(itertools.product(first.split(), second.split()))
    ]
    return [replace(one, group=one.id) for one in cases]


def test_other_verdicts_keep_their_confidence(model: Model) -> None:
    layer = fitted(model, *quota_labels()).layer
    assert layer.corrects
    for line in ("torch.OutOfMemoryError: CUDA out of memory", "RuntimeError: CUDA error of tenant", XID):
        assert verdict(model, line, layer).confidence == verdict(model, line).confidence


def test_a_changed_verdict_is_as_sure_as_changed_verdicts_are_right(model: Model) -> None:
    line = "RuntimeError: CUDA out of memory by quota of psi chi tenant budget"
    layer = fitted(model, *quota_labels(origin="captured")).layer
    assert layer.changed_confidence is not None
    assert 0.8 < layer.changed_confidence < 1.0  # all are right under cross-fitting; they are few
    assert verdict(model, line, layer).confidence == pytest.approx(layer.changed_confidence)
    by_operators = fitted(model, *quota_labels()).layer
    assert by_operators.changed_confidence is None, "corrections are a biased sample"


def changed(similar: list[float], weight: float) -> bool:
    """Whether labels so similar, which all say hardware, change a verdict of .9 for user."""
    scores = np.log([[0.9, 0.1]])
    weights = np.tile([-weight / 2, weight / 2], (len(similar), 1))
    return bool(layers.supported_changes(scores, np.array([similar]), weights)[0])


def test_one_label_does_not_change_a_verdict_that_agreeing_labels_change() -> None:
    assert not changed([0.5], 6.0)  # a lead of 0.8, by one label that adds 3.0
    assert changed([0.5] * 6, 1.0)  # the same lead by six labels


def test_labels_of_failures_that_are_hardly_alike_change_no_verdict() -> None:
    assert changed([0.06] * 100, 1.0)
    assert not changed([0.04] * 150, 1.0)


def test_labels_of_many_groups_move_failures_like_them(model: Model) -> None:
    made = fitted(model, *quota_labels())
    line = "RuntimeError: CUDA out of memory by quota of psi chi tenant budget"
    assert made.penalties["side"] is not None
    assert verdict(model, line).side == "user"
    assert verdict(model, line, made.layer).side == "system"
    assert verdict(model, line, made.layer).retry_outlook == "futile"  # corrections never allow a resubmit
    assert verdict(model, "torch.OutOfMemoryError: CUDA out of memory", made.layer).side == "user"


REFUSED = "tool{n}: {word}: ConnectionRefusedError: [Errno 111] Connection refused"


def refused_labels(labels: Mapping[str, str | None]) -> list[LabelledCase]:
    """Refused connections of many programs, with one label."""
    words = ("ledger", "orchard", "harbour", "lantern", "meadow", "quarry", "saddle", "timber")
    return [
        case(f"{word}{n}x", REFUSED.format(n=f"{word}{n}", word=word), labels)
        for word in words
        for n in ("a", "b", "c")
    ]


def test_labels_decide_between_the_sides_that_an_entry_leaves_open(model: Model) -> None:
    line = "vaultling cannot read its table\nurllib3.exceptions.NewConnectionError: [Errno 111] Connection refused"
    assert verdict(model, line).side == "system"
    layer = fitted(model, *refused_labels({"side": "user", "cause": "USER.1"})).layer
    assert verdict(model, line, layer).side == "user"
    assert layers.parse(layer.text()).text() == layer.text()
    assert verdict(model, line, fitted(model, *refused_labels(SYSTEM)).layer).side == "system"


def test_labels_reach_no_other_program_with_a_side_that_the_entry_rules_out(model: Model) -> None:
    layer = fitted(model, *refused_labels({"side": "hardware", "cause": "HW.NET.4"})).layer
    assert not any(one.entries for one in layer.support)
    line = "vaultling cannot read its table\nurllib3.exceptions.NewConnectionError: [Errno 111] Connection refused"
    assert verdict(model, line, layer).side == verdict(model, line).side


def test_of_too_many_groups_the_newest_move_others_whatever_their_order(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = quota_labels(when="2026-11-20T10:00:00+00:00")
    older = [
        case(f"old{number}x", LICENCE.replace("{n}", f"{word}"), SYSTEM, when="2025-11-20T10:00:00+00:00")
        for number, word in enumerate(itertools.islice(map("".join, itertools.permutations("abcde")), 40))
    ]
    monkeypatch.setattr(fitting, "MOST_GROUPS", len(newest))
    made = fitted(model, *newest, *older)  # exports begin with the newest
    assert (
        verdict(model, "RuntimeError: CUDA out of memory by quota of psi chi tenant budget", made.layer).side
        == "system"
    )


def test_golden_cases_are_never_learned(model: Model) -> None:
    layer = fitted(model, case("licence", LICENCE.format(n=1), SYSTEM, golden=True)).layer
    assert layer.is_empty


@pytest.mark.parametrize(
    ("provenance", "random"),
    [
        ({"origin": "operator", "feedback": "correct"}, False),
        ({"origin": "operator", "feedback": "confirm"}, False),
        ({"origin": "operator", "feedback": "import"}, False),
        ({"origin": "operator", "feedback": "audit"}, True),
        ({"origin": "captured"}, True),
    ],
)
def test_only_audits_of_operators_change_calibration(
    cases: list[LabelledCase], provenance: dict[str, str], *, random: bool
) -> None:
    assert is_random_sample(replace(cases[0], provenance=provenance)) is random


def test_a_layer_survives_its_file(model: Model) -> None:
    layer = fitted(model, case("licence", LICENCE.format(n=1), SYSTEM)).layer
    again = layers.parse(layer.text())
    assert again.id == layer.id
    assert again.text() == layer.text()
    assert layer.about["labellers"] == {"ana": 1}
    sure = replace(layer, changed_confidence=0.875)
    assert layers.parse(sure.text()).changed_confidence == 0.875
    assert "licence" in layer.text()


def test_a_layer_of_an_earlier_version_keeps_its_id(model: Model) -> None:
    stored = json.loads(fitted(model, case("licence", LICENCE.format(n=1), SYSTEM)).layer.text())
    assert set(stored["corrections"]) == {"bias", "kernel", "support"}, "what is not known is left out"
    del stored["corrections"]["kernel"]
    stored["corrections"]["support"] = []  # stored where there were no corrections
    text = json.dumps(stored, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    layer = layers.parse(text)
    assert layer.id == "site-" + hashlib.sha256(text.encode()).hexdigest()[:12]
    assert verdict(model, LICENCE.format(n=5), layer).side == "system"
    stored["corrections"]["bias"] = {"side": {"user": 1.0}}
    with pytest.raises(SiteLayerError, match="bias"):
        layers.parse(json.dumps(stored))


@pytest.mark.parametrize("text", ["", "{}", '{"format": "faultline-site/9"}', '{"format": "faultline-site/1"}'])
def test_a_foreign_file_is_refused(text: str) -> None:
    with pytest.raises(SiteLayerError):
        layers.parse(text)
