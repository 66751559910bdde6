"""Site layers of `faultline model`: list, show, compare, promote and roll back."""

import json
from dataclasses import asdict
from typing import Any

from classifiers.diagnoser import Diagnoser
from classifiers.evaluation import adaptation, metrics
from classifiers.model.site.layer import SiteLayer, SiteLayerError, parse
from service import compose
from service.cli import output
from service.cli.classifier.retrain import gate_data, shadow_lines
from service.cli.output import json_document
from service.errors import ConfigurationError, Conflict, FaultlineError
from service.learning import retraining
from service.learning.promotion import BY_A_PERSON
from service.learning.records import PACKAGED, StoredLayer
from service.people.records import COMMAND_LINE
from service.settings import Settings

PREFIX = "site-"


def layers(services: compose.ProcessServices) -> list[dict[str, Any]]:
    """The stored layers, newest first; none where there is no database with this schema."""
    try:
        services.store.check()
        with services.store.reading() as reading:
            active = reading.site_layers.active()
            return [
                {
                    "id": one.id,
                    "in_use": one.id == active and services.retraining.promotions.gives_verdicts(one),
                    "created": one.at,
                    "who": one.who,
                    "gate": one.gate.decision,
                    "reasons": list(one.gate.reasons),
                    "labels": one.about.get("labels"),
                }
                for one in reading.site_layers.list()
            ]
    except FaultlineError:
        return []


def show(services: compose.ProcessServices, layer_id: str) -> None:
    """Print a layer: what it rests on, the gate's result and its promotions.

    Raises:
        NotFound: no such layer.
        Conflict: it can't be read.
    """
    services.store.check()
    with services.store.reading() as reading:
        stored = reading.site_layers.get(layer_id)
        promotions = [asdict(one) for one in reading.site_layers.promotions(limit=200) if one.layer == layer_id]
    _parsed(stored)
    body = json.loads(stored.text)
    shown = {
        "id": stored.id,
        "about": body["about"],
        "gate": gate_data(stored.gate),
        "promotions": promotions,
        "calibration": body["calibration"],
        "memory": body["memory"],
        "support_cases": len(body["corrections"]["support"]),
    }
    json_document(shown)


def key_of(configured: Settings) -> bytes:
    """The key of seals.

    Raises:
        ConfigurationError: none is set.
    """
    key = configured.model_key_bytes()
    if key is None:
        raise ConfigurationError("FAULTLINE_MODEL_KEY: expected a key to seal models with (openssl rand -base64 32)")
    return key


def seal(services: compose.ProcessServices, layer_id: str) -> None:
    """Seal a stored layer with the key; one that was promoted, and not refused, as one that may give verdicts.

    Raises:
        NotFound: no such layer.
        ConfigurationError: there is no key.
    """
    services.store.check()
    key_of(services.settings)
    with services.store.unit_of_work() as work:
        work.site_layers.lock()
        decision = work.site_layers.get(layer_id).gate.decision
        used = any(one.layer == layer_id for one in work.site_layers.promotions(limit=1_000))
        accepted = used and decision != "refuse"
        services.retraining.promotions.seal(work, layer_id, accepted=accepted)
        work.audit_log.append(COMMAND_LINE, "model.sealed", f"model/{layer_id}", after={"accepted": accepted})
    output.line(f"sealed: {layer_id}" + (", which may give verdicts" if accepted else f", decision {decision}"))


def compare(services: compose.ProcessServices, first: str, second: str) -> None:
    """Print figures of two models on the packaged cases, the golden set and the newest stored failures.

    Raises:
        NotFound: no such layer.
        Conflict: one can't be read.
    """
    services.store.check()
    packaged = Diagnoser(services.diagnoser.packaged, services.signatures.current().layered.catalogue)
    one, other = (packaged.with_layer(_layer(services, name)) for name in (first, second))
    golden = retraining.stored_labels(services.store, golden=True)
    output.line(f"{'':34s}{first:>20s}{second:>20s}")
    for name, cases in (("packaged cases", retraining.benchmark_cases()), ("golden set", golden)):
        if not cases:
            continue
        answers = adaptation.answers_of_both(one, other, [case.raw for case in cases])
        measured = [metrics.measure(name, cases, given) for given in answers]
        for axis in ("side", "cause"):
            title = f"{name}, {axis} right of {len(cases)}"
            output.line(f"{title:34s}" + "".join(f"{one.axes[axis].accuracy:20.3f}" for one in measured))
        output.line(f"{f'{name}, calibration error':34s}" + "".join(f"{one.ece:20.3f}" for one in measured))
        for side, (count, before, after) in adaptation.recalls(cases, *answers).items():
            output.line(f"{f'{name}, recall of {side}, {count}':34s}{before:20.3f}{after:20.3f}")
    # What the second model changes on the newest stored failures.
    for text in shadow_lines(services.shadow_run.recent(one, other)):
        output.line(text)


def promote(services: compose.ProcessServices, layer_id: str) -> None:
    """Put a layer in use.

    Raises:
        NotFound: no such layer.
        Conflict: the gate refused it, or it is of another model.
    """
    services.store.check_for_changes()
    services.retraining.promotions.promote(layer_id, COMMAND_LINE, reason=BY_A_PERSON)
    output.line(f"{layer_id} is in use in all processes within ten seconds")


def rollback(services: compose.ProcessServices) -> None:
    """Return to the layer before the one in use.

    Raises:
        Conflict: there was none before.
    """
    services.store.check_for_changes()
    active, before = services.retraining.promotions.rollback(COMMAND_LINE)
    output.line(f"{before} is in use again instead of {active}")


def _layer(services: compose.ProcessServices, name: str) -> SiteLayer | None:
    if name == PACKAGED:
        return None
    with services.store.reading() as reading:
        return _parsed(reading.site_layers.get(name))


def _parsed(stored: StoredLayer) -> SiteLayer:
    try:
        return parse(stored.text)
    except SiteLayerError as error:
        raise Conflict(f"{stored.id} can't be read: {error}") from None
