"""`faultline retrain`: fit a site layer on the stored labels; the gate promotes it, refuses it or asks."""

import argparse

from classifiers.model.site.fitting import SiteFit
from service import compose, settings
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers
from service.cli.output import add_json_option, json_document
from service.formatting import with_noun
from service.learning import gate
from service.learning.records import GateResult
from service.learning.retraining import Candidate
from service.learning.shadow_figures import ShadowFigures
from service.people.records import COMMAND_LINE

_REVIEWED = 10


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "retrain",
        help="learn from the stored labels; the gate promotes the result, refuses it or asks",
        description="Exit code 1: the gate refuses the candidate or asks a person.",
    )
    parser.add_argument("--no-promote", action="store_true", help="store the candidate, but do not put it in use")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Retrain, and print the gate's decision with its reasons.

    Raises:
        FaultlineError: the database does not answer, or there is no model.
    """
    services = compose.build(settings.read())
    try:
        services.store.check()
        return learn(services, promote=not args.no_promote, as_json=args.format == "json")
    finally:
        services.close()


def learn(services: compose.ProcessServices, *, promote: bool = True, as_json: bool = False) -> int:
    """Retrain, and print the result; returns the exit code.

    Raises:
        FaultlineError: the database does not answer, or there is no model.
    """
    made = services.retraining.retrain(COMMAND_LINE, promote=promote, progress=output.progress)
    if as_json:
        json_document(
            {
                "id": made.layer_id,
                "promoted": made.promoted,
                "gate": gate_data(made.gate),
                "conflicts": list(made.fit.conflicts),
                "doubtful": list(made.fit.doubtful),
            }
        )
    else:
        output.document("\n".join(lines(made)))
    return exit_codes.OK if made.gate.decision == "promote" else exit_codes.FAILED


def gate_data(result: GateResult) -> dict[str, object]:
    """The gate's result as JSON data."""
    shadow = None if result.shadow is None else result.shadow.model_dump()
    return {
        "decision": result.decision,
        "reasons": list(result.reasons),
        "figures": dict(result.figures),
        "shadow_run": shadow,
    }


def lines(made: Candidate) -> list[str]:
    """The result in words."""
    about = made.fit.layer.about
    found = [f"{made.layer_id}: {with_noun(about['labels'], 'label')} of {with_noun(about['groups'], 'group')}"]
    found.append(gate.decision_in_words(made.gate.decision))
    found += [f"- {reason}" for reason in made.gate.reasons]
    found += shadow_lines(made.gate.shadow)
    found += _review(made.fit)
    if made.promoted:
        found.append("in use in all processes within ten seconds; faultline model rollback returns to the one before")
    elif made.fit.layer.is_empty and not about["parents"]:
        found.append("not in use: it rests on no label, and changes nothing")
    elif made.gate.decision != "refuse":
        found.append(f"not in use: faultline model promote {made.layer_id} puts it in use")
    return found


def shadow_lines(shadow: ShadowFigures | None) -> list[str]:
    """A shadow run in words: changes by cause, changed decisions, and failures to look at."""
    if shadow is None or not shadow.read:
        return []
    found = [f"shadow run: {shadow.changed} of {shadow.read} failures get another verdict ({shadow.share:.1%})"]
    found += [f"- {one.cause}: {one.changed} of {one.read}" for one in shadow.by_cause if one.changed]
    found += [
        f"- decision {one.before} becomes {one.after}: {with_noun(one.failures, 'failure')}, "
        f"{one.gpu_hours:.1f} GPU-hours"
        for one in shadow.decisions
    ]
    found += [f"- failure {one.failure}: {one.change}: {one.headline}" for one in shadow.examples]
    return found


def _review(fit: SiteFit) -> list[str]:
    found = []
    for title, cases in (("labels that contradict their group", fit.conflicts), ("doubtful labels", fit.doubtful)):
        if cases:
            more = "" if len(cases) <= _REVIEWED else f" and {len(cases) - _REVIEWED} more"
            found.append(f"review {len(cases)} {title}: " + ", ".join(cases[:_REVIEWED]) + more)
    return found
