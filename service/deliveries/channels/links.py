"""Links in messages to the pages of this service."""

from service.deliveries.records import DueDelivery


def failure_link(public_url: str | None, message: DueDelivery) -> str | None:
    """The link to the failure's page, if the public address of the service is configured."""
    failure_id = message.payload.get("failure_id")
    return None if public_url is None or failure_id is None else f"{public_url.rstrip('/')}/failures/{failure_id}"
