"""Site layers and their promotions."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, get_args

from sqlalchemy import Row, delete, func, insert, select, update

from service.errors import DAMAGED, DamagedData, NotFound
from service.learning.records import PACKAGED, ROLLBACK_FROM, GateDecision, GateResult, Promotion, StoredLayer
from service.learning.shadow_figures import ShadowFigures
from service.learning.tables import model_promotions, site_layers
from service.sql import bulk
from service.sql.bulk import upsert
from service.sql.packing import pack, unpack
from service.sql.reader import TimedReader
from service.sql.types import clean, utc

LOCK = 0x6661756C_6D6F6465
_REASON = 500  # characters
_REFUSALS = 100  # the newest layers among which a refused one is looked for: more than are kept
_CLOCKS_DIFFER = timedelta(minutes=5)  # between the machines of a service, at most
_DAMAGED = (DamagedData, ValueError, KeyError, TypeError, AttributeError)  # what reading altered bytes raises


class SiteLayerReader(TimedReader):
    """Reads site layers and promotions."""

    def get(self, layer_id: str) -> StoredLayer:
        """One layer.

        Raises:
            NotFound: no such layer.
        """
        row = self._connection.execute(select(site_layers).where(site_layers.c.id == layer_id[:40])).first()
        if row is None:
            raise NotFound(f"no model {layer_id[:40]}: faultline model list shows those that are stored")
        return _layer(row)

    def list(self, *, limit: int = 50) -> tuple[StoredLayer, ...]:
        """The stored layers, newest first."""
        rows = self._connection.execute(select(site_layers).order_by(site_layers.c.at.desc()).limit(limit))
        return tuple(_layer(row) for row in rows)

    def newest(self) -> StoredLayer | None:
        """The newest layer, but for those of a clock that was ahead: they would be the newest for long."""
        latest = utc(self._clock.now()) + _CLOCKS_DIFFER
        wanted = select(site_layers).where(site_layers.c.at <= latest).order_by(site_layers.c.at.desc()).limit(1)
        row = self._connection.execute(wanted).first()
        return None if row is None else _layer(row)

    def last_promotion(self) -> int:
        """The number of the last promotion, 0 if there is none."""
        return int(self._connection.execute(select(func.coalesce(func.max(model_promotions.c.id), 0))).scalar_one())

    def promotions(self, *, limit: int = 20) -> tuple[Promotion, ...]:
        """The changes of the layer in use, newest first."""
        rows = self._connection.execute(select(model_promotions).order_by(model_promotions.c.id.desc()).limit(limit))
        return tuple(Promotion(row.id, row.at, row.who, row.layer or PACKAGED, row.reason) for row in rows)

    def active(self) -> str:
        """The id of the layer in use, or `PACKAGED`."""
        return next((one.layer for one in self.promotions(limit=1)), PACKAGED)

    def before_active(self) -> tuple[str, ...]:
        """The other layers that a rollback may return to, each once, latest first; the packaged model is the last one.

        Layers that were rolled back are not among them, unless they were promoted again since; those that were deleted
        since are.
        """
        used = [PACKAGED]
        for one in reversed(self.promotions(limit=1_000)):
            if one.reason == f"{ROLLBACK_FROM}{used[-1]}" and one.layer in used:
                while used[-1] != one.layer:
                    used.pop()
            else:
                used.append(one.layer)
        return tuple(one for one in dict.fromkeys([*reversed(used), PACKAGED]) if one != used[-1])


class SiteLayerRepository(SiteLayerReader):
    """Reads and writes site layers and promotions."""

    def lock(self) -> None:
        """Let no other transaction change layers, or the one in use, until this one ends."""
        bulk.lock(self._connection, [LOCK])

    def add(
        self,
        layer_id: str,
        text: str,
        actor: str,
        gate: GateResult,
        *,
        at: datetime | None = None,
    ) -> GateResult:
        """Store a candidate; the same content is stored once, with the newest result of the gate, unsealed.

        Args:
            layer_id: the id of the layer.
            text: the layer as JSON.
            actor: who fitted it.
            gate: the gate's result.
            at: when its labels were read; None: now.

        Returns:
            The result as stored: a person's refusal of a layer of the same labels and packaged model stays.
        """
        self.lock()  # a person may refuse it at the same time
        made = StoredLayer(layer_id, at or self._clock.now(), actor, gate, text)
        refusals = (one.gate.refusal for one in self.list(limit=_REFUSALS) if one.origin == made.origin)
        refusal = next((one for one in refusals if one is not None), None)
        if refusal is not None:
            gate = replace(gate, decision="refuse", reasons=(refusal, *gate.reasons))
        values: dict[str, Any] = {
            "at": utc(at or self._clock.now()),
            "who": clean(actor[:200]),
            "decision": gate.decision,
            "gate": _pack_gate(gate, None),
        }
        writing = upsert(self._connection, site_layers).values(id=layer_id, body=pack(text), **values)
        self._connection.execute(writing.on_conflict_do_update(index_elements=["id"], set_=values))
        return gate

    def seal(self, layer_id: str, seal: str) -> None:
        """Store the keyed seal of a layer.

        Raises:
            NotFound: no such layer.
        """
        stored = self._locked(layer_id)
        changed = update(site_layers).where(site_layers.c.id == layer_id)
        self._connection.execute(changed.values(gate=_pack_gate(stored.gate, seal)))

    def record_shadow(self, layer_id: str, shadow: ShadowFigures) -> None:
        """Store the figures of a candidate's shadow run.

        Raises:
            NotFound: no such layer.
        """
        stored = self._locked(layer_id)
        changed = update(site_layers).where(site_layers.c.id == layer_id)
        self._connection.execute(changed.values(gate=_pack_gate(replace(stored.gate, shadow=shadow), stored.seal)))

    def refuse(self, layer_id: str, reason: str) -> None:
        """Change the decision on a candidate to a refusal, with a reason in addition to those of the gate.

        Raises:
            NotFound: no such layer.
        """
        stored = self._locked(layer_id)
        gate = replace(stored.gate, decision="refuse", reasons=(clean(reason[:_REASON]), *stored.gate.reasons))
        changed = update(site_layers).where(site_layers.c.id == layer_id)
        self._connection.execute(changed.values(decision=gate.decision, gate=_pack_gate(gate, stored.seal)))

    def promote(self, layer: str, actor: str, reason: str) -> None:
        """Put a stored layer, or `PACKAGED`, in use.

        Raises:
            NotFound: no such layer.
        """
        self.lock()
        if layer != PACKAGED:
            self.get(layer)
        self._connection.execute(
            insert(model_promotions).values(
                at=utc(self._clock.now()),
                who=clean(actor[:200]),
                layer="" if layer == PACKAGED else layer,
                reason=clean(reason[:_REASON]),
            )
        )

    def _locked(self, layer_id: str) -> StoredLayer:
        """One layer, which no other transaction changes until this one ends."""
        self.lock()
        return self.get(layer_id)

    def prune(self, keep: int) -> int:
        """Delete all but the newest `keep` layers and the last `keep` that a rollback finds; returns how many.

        The one in use and the one before it are always kept.
        """
        newest = {one.id for one in self.list(limit=keep)}
        protected = newest | {self.active(), *self.before_active()[: max(1, keep)]}
        return self._connection.execute(delete(site_layers).where(site_layers.c.id.not_in(protected))).rowcount


def _pack_gate(gate: GateResult, seal: str | None) -> bytes:
    shadow = None if gate.shadow is None else gate.shadow.model_dump()
    return pack({"reasons": list(gate.reasons), "figures": dict(gate.figures), "seal": seal, "shadow": shadow})


def _layer(row: Row[Any]) -> StoredLayer:
    """The layer of a row; a damaged one has no text, or counts as refused, so that the others can be read."""
    try:
        text = str(unpack(row.body))
    except _DAMAGED:
        text = ""
    try:
        gate = unpack(row.gate)
        if row.decision not in get_args(GateDecision):
            raise DamagedData(DAMAGED)
        shadow = None if gate.get("shadow") is None else ShadowFigures.model_validate(gate["shadow"])
        result = GateResult(row.decision, tuple(gate["reasons"]), gate["figures"], shadow)
        return StoredLayer(row.id, row.at, row.who, result, text, gate.get("seal"))
    except _DAMAGED:
        return StoredLayer(row.id, row.at, row.who, GateResult("refuse", ("the stored decision is damaged",)), text)
