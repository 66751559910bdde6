"""Who asks for a deed and what they say of it: what forms and calls come to before anything is done."""

from dataclasses import dataclass

from service.web.auth import Principal
from service.web.services import Services


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """Somebody who may asks for a deed; `services` sees what they see. `comment`: None where they gave none."""

    services: Services
    principal: Principal
    comment: str | None = None

    @property
    def actor(self) -> str:
        """Their name, as records keep it."""
        return self.principal.name
