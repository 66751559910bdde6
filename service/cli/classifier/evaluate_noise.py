"""`faultline evaluate --noise`: how verdicts hold among harmless node events and neutral log lines."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from classifiers.case_builder import job_facts
from classifiers.composition import training_cases
from classifiers.contracts import Verdict
from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.evaluation import held_out, noise_robustness
from classifiers.evaluation.noise_robustness import Figures, Trial
from classifiers.evaluation.resampling import Estimate
from classifiers.model.artifact import Model
from classifiers.signatures import Catalogue
from service.cli import output
from service.cli.files import write_output
from service.recommend.advise import would_resubmit_without_history
from service.recommend.facts import Facts, OptIn
from service.recommend.policy import Policy

SAMPLE: Final = 600  # cases of the packaged ones
_WIDTHS: Final = (22, 7, 7, 22, 22, 17, 28)  # characters, of the table's columns
_NO_TIME: Final = datetime(2026, 1, 1, tzinfo=UTC)


def resubmitter(policy: Policy) -> Callable[[Mapping[str, Any], Verdict], bool]:
    """Return a function that tells whether an event with a verdict would be resubmitted, without history."""

    def would(event: Mapping[str, Any], verdict: Verdict) -> bool:
        job = job_facts(event)
        facts = Facts(now=job.ended_at or _NO_TIME, opt_in=OptIn("auto", "assumed"))
        return would_resubmit_without_history(verdict, job, facts, policy)

    return would


def measure(
    cases: Sequence[LabelledCase] | None,
    model: Model,
    catalogue: Catalogue,
    policy: Policy,
    progress: Callable[[str], None],
) -> list[Trial]:
    """Classify cases with and without noise: the given ones by the model as it is, or None for packaged cases.

    Of the packaged cases a sample is taken; each kind is classified by a model that has not seen it and was trained as
    `faultline train` does, with noise of the half of the entries that is for training.
    """
    would = resubmitter(policy)
    if cases is not None:
        return noise_robustness.trials(cases, Diagnoser(model, catalogue).diagnose, would)
    packaged = training_cases.packaged()
    chosen = {case.id for case in noise_robustness.sample(packaged, SAMPLE, seed=0)}
    done: list[Trial] = []
    training = training_cases.packaged(training_cases.TRAINING_NOISE)
    folds = held_out.fold_diagnosers(packaged, catalogue, model, training=training, progress=progress)
    for diagnoser, outside in folds:
        own = [case for case in outside if case.id in chosen]
        done += noise_robustness.trials(own, diagnoser.diagnose, would)
    return done


def table(figures: Sequence[Figures]) -> str:
    """Return the figures as a plain table: shares with their 95 % intervals."""
    titles = ("events", "cases", "side stays", "cause stays", "resubmits added", "fault found")
    rows = [
        (
            one.name,
            str(one.events),
            str(one.side_stays.cases),
            _shown(one.side_stays),
            _shown(one.cause_stays),
            str(one.resubmits_turned_on),
            _shown(one.faults_found, count=True),
        )
        for one in figures
    ]
    return "\n".join(
        f"{row[0]:<{_WIDTHS[0]}}"
        + "".join(f"{cell:>{width}}" for cell, width in zip(row[1:], _WIDTHS[1:], strict=True))
        for row in [("noise", *titles), *rows]
    )


def _shown(share: Estimate, *, count: bool = False) -> str:
    if not share.cases:
        return "-"
    of = f" of {share.cases}" if count else ""
    return f"{share.value:.3f}{of} [{share.low:.3f}, {share.high:.3f}]"


def run(
    args: argparse.Namespace,
    cases: Sequence[LabelledCase] | None,
    model: Model,
    catalogue: Catalogue,
    policy: Policy,
    progress: Callable[[str], None],
) -> int:
    """Measure, print the table and write the figures as JSON to `args.json`."""
    done = measure(cases, model, catalogue, policy, progress)
    figures = noise_robustness.summarize(done)
    output.document(table(figures))
    if args.json is not None:
        changed = [
            {"case": one.case_id, "noise": one.condition.name, "events": one.condition.events}
            for one in done
            if not one.side_stays or one.resubmit_turned_on or one.fault_found is False
        ]
        content = {"model": model.label, "figures": [asdict(one) for one in figures], "changed": changed}
        write_output(args.json, (json.dumps(content, indent=1) + "\n").encode())
    return 0
