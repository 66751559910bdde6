"""Nine wrong labels of one person, of nine groups whose logs show and name settings such as weight_decay.

They may give their own groups that label, which is what a label means. Verdicts of other groups stay.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from threadpoolctl import threadpool_info

from classifiers import signatures
from classifiers.contracts import Verdict
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.model.artifact import Model
from classifiers.model.linear_model import softmax
from classifiers.model.site import fitting
from classifiers.model.site.fitting import SiteFit
from classifiers.model.site.layer import SiteLayer

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SETTINGS = "settings: lr: 0.1\nsettings: weight_decay: 0.0{n}\nsettings: momentum: 0.9\nstep 10 loss 2.1\n"
MISTAKES = (
    "KeyError: 'weight_decay'",
    "ValueError: Invalid weight_decay value: -0.1",
    "TypeError: AdamW.__init__() got an unexpected keyword argument 'weight_decays'",
    "omegaconf.errors.ConfigAttributeError: Key 'weight_decay' is not in struct",
    "train.py: error: unrecognized arguments: --weight-decay-rate 0.1",
    "AttributeError: 'Namespace' object has no attribute 'weight_decay'",
    "hydra.errors.ConfigCompositionException: Could not override 'optimizer.weight_decay'.",
    "ValueError: could not convert string to float: 'weight_decay'",
    "AssertionError: weight_decay must be below 1, got 10",
)
OTHERS = (
    "KeyError: 'momentum'",
    "KeyError: 'warmup_steps'",
    "AttributeError: 'Namespace' object has no attribute 'lr_schedule'",
    "omegaconf.errors.ConfigAttributeError: Key 'dropout' is not in struct",
    "ValueError: Invalid momentum value: -0.1",
    "TypeError: AdamW.__init__() got an unexpected keyword argument 'momentums'",
    "train.py: error: unrecognized arguments: --lr-rate 0.1",
    "ValueError: could not convert string to float: 'lr'",
    "AssertionError: lr must be below 1, got 10",
    "RuntimeError: weight_decay schedule diverged: loss is nan",
    "torch.OutOfMemoryError: CUDA out of memory",
    "ModuleNotFoundError: No module named 'flash_attn'",
    "OSError: [Errno 28] No space left on device",
    "kernel: NVRM: Xid (PCI:0000:0f:00): 79, GPU has fallen off the bus",
    "srun: error: Node failure on gpu7",
    "Segmentation fault (core dumped)",
)
WRONG = (
    {"side": "hardware", "cause": "HW.GPU.1", "retry": "helps_elsewhere"},
    {"side": "system", "cause": "SYS.5", "retry": "helps"},
    {"side": "system", "cause": "SYS.1", "retry": "after_repair"},
)


def labelled(name: str, n: int, line: str, labels: dict[str, str], who: str) -> LabelledCase:
    raw = {
        "id": name,
        "group": name,
        "kind": name,
        "event": {"status": "failed", "gpus": 1, "logs": [{"rank": 0, "tail": f"{SETTINGS.format(n=n)}{line}\n"}]},
        "labels": {axis: labels.get(axis) for axis in ("side", "cause", "category", "symptom", "retry")},
        "provenance": {"origin": "operator", "who": who},
    }
    return labelled_cases.parse(raw, "test")


def wrong(labels: dict[str, str]) -> list[LabelledCase]:
    return [labelled(f"wrong{n}", n, line, labels, "mallory") for n, line in enumerate(MISTAKES)]


def right() -> list[LabelledCase]:
    """Right labels of another person, of 36 groups of a site's own failure: enough for corrections."""
    features, pools = "alpha beta gamma delta epsilon zeta eta theta iota", "lambda mu omicron sigma"
    return [
        labelled(f"right{n}", n, f"flexnet: no seat left for {a} {b}, licence server gave up", WRONG[1], "ben")
        for n, (a, b) in enumerate(itertools.product(features.split(), pools.split()))
    ]


def fitted(model: Model, cases: Sequence[LabelledCase]) -> SiteFit:
    return fitting.fit(model, signatures.packaged(), cases, now=NOW)


def verdicts(model: Model, layer: SiteLayer | None, lines: Sequence[str]) -> list[Verdict]:
    """The verdicts on failures with these lines below the settings, without the name of the model."""
    raws = [labelled(f"new{n}", n, line, {"side": "user"}, "nobody").raw for n, line in enumerate(lines)]
    return [replace(one, model="") for one in Diagnoser(model, signatures.packaged(), layer).diagnose(raws)]


@pytest.mark.slow
@pytest.mark.parametrize("labels", WRONG, ids=[one["cause"] for one in WRONG])
@pytest.mark.parametrize("others", [False, True], ids=["alone", "among-right-labels"])
def test_verdicts_of_other_groups_stay_the_same(model: Model, labels: dict[str, str], *, others: bool) -> None:
    base = right() if others else []
    without, made = fitted(model, base).layer, fitted(model, [*base, *wrong(labels)]).layer
    assert made.corrects == others
    assert verdicts(model, made, OTHERS) == verdicts(model, without, OTHERS)
    own = verdicts(model, made, MISTAKES)
    assert {one.side for one in own} == {labels["side"]}, "their own groups have the label"
    assert "helps" not in {one.retry_outlook for one in own}, "one person's word allows no resubmit"
    assert "helps_elsewhere" not in {one.retry_outlook for one in own}


@pytest.mark.slow
@pytest.mark.parametrize("labels", WRONG, ids=[one["cause"] for one in WRONG])
def test_most_of_them_are_listed_as_unlikely_and_no_right_label_is(model: Model, labels: dict[str, str]) -> None:
    made = fitted(model, [*right(), *wrong(labels)])
    doubtful = made.doubtful
    assert made.layer.about["doubtful"] == list(doubtful), "for whoever reads the layer later"
    assert len(doubtful) > len(MISTAKES) / 2
    assert all(name.startswith("wrong") for name in doubtful)


@pytest.mark.slow
@pytest.mark.parametrize("log", [None, "of progress"])
@pytest.mark.parametrize("among", [False, True], ids=["alone", "among-right-labels"])
def test_a_label_of_a_failure_that_shows_nothing_reaches_no_other(
    model: Model, log: str | None, *, among: bool
) -> None:
    base = right() if among else []
    before = Diagnoser(model, signatures.packaged(), fitted(model, base).layer)
    one = labelled("silent", 1, "", WRONG[0], "mallory")
    [stream] = one.raw.streams
    silent, steps, others = (
        replace(one, raw=replace(one.raw, streams=found))
        for found in (
            (),
            (replace(stream, text="step 10 loss 2.1\n"),),
            (replace(stream, text="step 96 loss 0.4\nstep 97 loss 0.4\n"),),
        )
    )
    shown = silent if log is None else steps
    after = before.with_layer(fitted(model, [*base, shown]).layer)
    failures = [silent.raw, replace(silent.raw, job=replace(one.raw.job, exit_code=137)), steps.raw, others.raw]
    kept, made = (
        [(answer.side, answer.cause, answer.confidence) for answer in each.diagnose(failures)]
        for each in (before, after)
    )
    assert made == kept


@pytest.mark.slow
def test_corrections_are_fitted_by_one_thread(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()

    def counted(scores: Any) -> Any:
        threads.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return softmax(scores)

    monkeypatch.setattr(fitting, "softmax", counted)
    assert fitted(model, right()).layer.about["groups"] >= fitting.LEAST_GROUPS
    assert threads == {1}
