import itertools
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

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
    assert made.layer.support == ()


def test_labels_of_many_groups_move_failures_like_them(model: Model) -> None:
    first, second = "alpha beta gamma delta epsilon zeta eta theta iota", "lambda mu omicron sigma"
    cases = [
        case(f"{a}{number}x", f"RuntimeError: CUDA out of memory by quota of {a} {b} tenant budget", SYSTEM)
        for number, (a, b) in enumerate(itertools.product(first.split(), second.split()))
    ]
    made = fitted(model, *(replace(one, group=one.id) for one in cases))
    line = "RuntimeError: CUDA out of memory by quota of psi chi tenant budget"
    assert made.penalties["side"] is not None
    assert verdict(model, line).side == "user"
    assert verdict(model, line, made.layer).side == "system"
    assert verdict(model, line, made.layer).retry_outlook == "futile"  # corrections never allow a resubmit
    assert verdict(model, "torch.OutOfMemoryError: CUDA out of memory", made.layer).side == "user"


def test_golden_cases_are_never_learned(model: Model) -> None:
    layer = fitted(model, case("licence", LICENCE.format(n=1), SYSTEM, golden=True)).layer
    assert layer.is_empty


def test_corrections_of_operators_do_not_change_calibration(model: Model, cases: list[LabelledCase]) -> None:
    operators = [replace(one, provenance={"origin": "operator", "who": "ana"}) for one in cases]
    assert fitted(model, *operators).layer.calibration.cases == 0


def test_a_layer_survives_its_file(model: Model) -> None:
    layer = fitted(model, case("licence", LICENCE.format(n=1), SYSTEM)).layer
    again = layers.parse(layer.text())
    assert again.id == layer.id
    assert again.text() == layer.text()
    assert layer.about["labellers"] == {"ana": 1}
    assert "licence" in layer.text()


@pytest.mark.parametrize("text", ["", "{}", '{"format": "faultline-site/9"}', '{"format": "faultline-site/1"}'])
def test_a_foreign_file_is_refused(text: str) -> None:
    with pytest.raises(SiteLayerError):
        layers.parse(text)
