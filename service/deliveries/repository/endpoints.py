"""The circuit breaker of each endpoint, shared by all processes."""

from datetime import datetime

from sqlalchemy import Row, select, text, update

from service.deliveries.records import EndpointState
from service.deliveries.tables import endpoints
from service.sql.reader import Reader
from service.sql.types import short

# Two processes may create the row of an endpoint at the same time.
_INSERT = text(
    "INSERT INTO endpoints (name, target, failures) VALUES (:name, :target, 0) ON CONFLICT (name) DO NOTHING"
)


class EndpointReader(Reader):
    """Reads endpoints."""

    def all(self) -> dict[str, EndpointState]:
        """Every endpoint that ever received a delivery, by name."""
        rows = self._connection.execute(select(endpoints).order_by(endpoints.c.name))
        return {row.name: _state(row) for row in rows}


class EndpointRepository(EndpointReader):
    """Reads and writes endpoints."""

    def lock(self, name: str, address_sha256: str) -> EndpointState:
        """The endpoint's state, locked for this transaction; a changed address resets it."""
        self._connection.execute(_INSERT, {"name": name, "target": address_sha256})
        row = self._connection.execute(select(endpoints).where(endpoints.c.name == name).with_for_update()).one()
        if row.target == address_sha256:
            return _state(row)
        fresh = EndpointState(name, address_sha256)
        self.put(fresh)
        return fresh

    def put(self, state: EndpointState) -> None:
        """Store the state of a locked endpoint."""
        self._connection.execute(
            update(endpoints)
            .where(endpoints.c.name == state.name)
            .values(
                target=state.address_sha256,
                failures=state.failures,
                paused_until=state.paused_until,
                disabled_at=state.disabled_at,
                detail=short(state.detail, 300),
            )
        )

    def enable(self, name: str) -> None:
        """Allow an endpoint to be tried at once."""
        self._connection.execute(
            update(endpoints)
            .where(endpoints.c.name == name)
            .values(failures=0, paused_until=None, disabled_at=None, detail=None)
        )


def paused(state: EndpointState | None, now: datetime) -> bool:
    """Whether the endpoint may not be tried now."""
    if state is None:
        return False
    return state.disabled_at is not None or (state.paused_until is not None and state.paused_until > now)


def _state(row: Row[tuple[object, ...]]) -> EndpointState:
    return EndpointState(row.name, row.target, row.failures, row.paused_until, row.disabled_at, row.detail)
