"""Puts a stored layer in use, or the one before it; both are entries of the audit log."""

from typing import Final

from classifiers.model.site.layer import SiteLayer, parse
from service.db.session import ReadSession, Store, UnitOfWork
from service.errors import Conflict, FieldError, NotFound
from service.learning.gate import one_labeller
from service.learning.records import ACCEPTED, PACKAGED, REFUSED_BY, ROLLBACK_FROM, StoredLayer

KEPT_LAYERS: Final = 20
BY_A_PERSON: Final = "promoted by a person"  # where the person gives no reason


class Promotions:
    """Promotes and rolls back.

    Args:
        store: the registry.
        base: the id of the packaged model in use; layers of another one can't be promoted.
        key: the key that seals layers; None: seals are not checked.
    """

    def __init__(self, store: Store, base: str, key: bytes | None = None) -> None:
        self._store = store
        self.base = base
        self._key = key

    def obstacle(self, stored: StoredLayer) -> str | None:
        """Why a layer cannot be promoted; None if it can be."""
        if stored.is_sealed(self._key) and stored.gate.decision == "refuse":
            return "the gate refused it: " + "; ".join(stored.gate.reasons)
        return self.misfit(stored)

    def misfit(self, stored: StoredLayer) -> str | None:
        """Why a layer cannot be computed with here, whatever the gate says of it; None if it can."""
        if not stored.is_sealed(self._key):
            return "it is not sealed with FAULTLINE_MODEL_KEY: run faultline model seal"
        if stored.problem is not None:
            return f"it can't be read: {stored.problem}"
        if stored.base != self.base:
            return "it was fitted on another packaged model: run faultline retrain"
        return None

    def gives_verdicts(self, stored: StoredLayer) -> bool:
        """Whether a layer gives verdicts once it is in use: it fits, and its seal says that it was promoted."""
        return stored.is_accepted(self._key) and self.misfit(stored) is None

    def is_in_use(self, reading: ReadSession, layer_id: str) -> bool:
        """Whether a layer gives verdicts now."""
        if reading.site_layers.active() != layer_id:
            return False
        return self.gives_verdicts(reading.site_layers.get(layer_id))

    def seal(self, work: UnitOfWork, layer_id: str, *, accepted: bool = False) -> None:
        """Seal a stored layer with the key, if there is one: with its decision, or as one that may give verdicts.

        Raises:
            NotFound: no such layer.
        """
        if self._key is not None:
            stored = work.site_layers.get(layer_id)
            work.site_layers.seal(layer_id, stored.seal_as(ACCEPTED if accepted else stored.gate.decision, self._key))

    def in_use(self, reading: ReadSession) -> SiteLayer | None:
        """The layer that gives verdicts now: None for the packaged model alone.

        A layer of another packaged model, one whose seal does not say that it was promoted, or an empty one gives none.
        """
        name = reading.site_layers.active()
        stored = None if name == PACKAGED else reading.site_layers.get(name)
        layer = None if stored is None or not self.gives_verdicts(stored) else parse(stored.text)
        return None if layer is None or layer.is_empty else layer

    def promote(self, layer_id: str, actor: str, *, reason: str | None = None, instead_of: int | None = None) -> None:
        """Put a stored layer in use in all processes. Nothing changes if it is in use already.

        Args:
            layer_id: the layer.
            actor: who promotes it.
            reason: why; None: the gate's reasons.
            instead_of: the number of the last promotion that the gate, or the person, knew; None: any.

        Raises:
            NotFound: no such layer.
            Conflict: the gate refused it, it was fitted on another model, it is not sealed with the key, nearly all of
                its labels are by the person who promotes it, or another layer was put in use meanwhile.
        """
        with self._store.unit_of_work() as work:
            work.site_layers.lock()
            stored = work.site_layers.get(layer_id)
            why = self.obstacle(stored) or _second_person(stored, actor)
            if why is not None:
                problem = FieldError("model", "a layer that can be promoted", layer_id)
                raise Conflict(f"{layer_id} cannot be promoted: {why}"[:1_000], (problem,))
            before = work.site_layers.active()
            if before == layer_id and self.gives_verdicts(stored):
                return
            _check_seen(work, instead_of, f"{layer_id} is not promoted")
            work.site_layers.promote(layer_id, actor, reason or "; ".join(stored.gate.reasons))
            self.seal(work, layer_id, accepted=True)
            work.site_layers.prune(KEPT_LAYERS)
            work.audit_log.append(
                actor, "model.promoted", f"model/{layer_id}", before={"model": before}, after={"model": layer_id}
            )

    def refuse(self, layer_id: str, actor: str, *, reason: str | None = None) -> None:
        """Refuse a candidate for good.

        Raises:
            NotFound: no such layer.
            Conflict: it is in use.
        """
        with self._store.unit_of_work() as work:
            work.site_layers.lock()
            stored = work.site_layers.get(layer_id)
            if work.site_layers.active() == layer_id:
                expected = "a layer that is not in use: roll back first"
                raise Conflict(f"{layer_id}: expected {expected}", (FieldError("model", expected),))
            work.site_layers.refuse(layer_id, f"{REFUSED_BY}{actor}" + (f": {reason}" if reason else ""))
            self.seal(work, layer_id)
            before, after = {"decision": stored.gate.decision}, {"decision": "refuse", "reason": reason}
            work.audit_log.append(actor, "model.refused", f"model/{layer_id}", before=before, after=after)

    def rollback(self, actor: str, *, instead_of: int | None = None) -> tuple[str, str]:
        """Return to the latest earlier layer that can be promoted, or to the packaged model.

        Another rollback goes further back, never to the layer that was rolled back.

        Args:
            actor: who rolls back.
            instead_of: the number of the last promotion that the person knew; None: any.

        Returns:
            The former layer and the present one.

        Raises:
            Conflict: there is none, or another layer was put in use meanwhile.
        """
        with self._store.unit_of_work() as work:
            work.site_layers.lock()
            _check_seen(work, instead_of, "nothing is rolled back")
            active = work.site_layers.active()
            before = next((one for one in work.site_layers.before_active() if self._usable(work, one)), None)
            if before is None:
                raise Conflict("no earlier model can be put in use", (FieldError("model", "an earlier promotion"),))
            work.site_layers.promote(before, actor, f"{ROLLBACK_FROM}{active}")
            work.audit_log.append(
                actor, "model.rolled_back", f"model/{before}", before={"model": active}, after={"model": before}
            )
        return active, before

    def _usable(self, work: UnitOfWork, layer: str) -> bool:
        """Whether a rollback can return to a layer: the packaged model, or one that was promoted, without obstacle."""
        if layer == PACKAGED:
            return True
        try:
            stored = work.site_layers.get(layer)
            return self.gives_verdicts(stored) and self.obstacle(stored) is None
        except NotFound:
            return False


def _check_seen(work: UnitOfWork, instead_of: int | None, what: str) -> None:
    """Check that no model was put in use since somebody decided.

    Raises:
        Conflict: one was.
    """
    if instead_of is not None and work.site_layers.last_promotion() != instead_of:
        raise Conflict(f"{what}: another model was put in use meanwhile")


def _second_person(stored: StoredLayer, actor: str) -> str | None:
    """Why this person may not: the gate wants a second person, and they gave nearly all labels. None if they may."""
    labellers = stored.about.get("labellers", {})
    if stored.gate.decision == "ask" and one_labeller(labellers) == actor:
        return "you gave nearly all of its labels, so another person has to promote it"
    return None
