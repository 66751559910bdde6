"""An authorised request for an action: the caller, their comment, and the services they may use."""

from dataclasses import dataclass

from service.web.auth import Principal
from service.web.services import Services


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """An action requested by an authorised principal. `services` is limited to the failures this principal may see."""

    services: Services
    principal: Principal
    comment: str | None = None

    @property
    def actor(self) -> str:
        """The name of the principal, as stored in records."""
        return self.principal.name
