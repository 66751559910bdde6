"""Verification of webhook signatures: Standard Webhooks 1.0.0, the receiver's side."""

import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from service.deliveries.channels import signing

TOLERANCE = timedelta(minutes=5)  # the same value as in the specification's reference implementations
LONGEST_ID = 256


class InvalidSignature(Exception):
    """The message is rejected; the text says why, without its content."""


def verify(keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: datetime) -> None:
    """Return if one of the keys signed this message within the tolerance.

    Args:
        keys: the accepted keys.
        headers: headers by lower-case name.
        body: the body as received.
        now: the current time.

    Raises:
        InvalidSignature: a header is missing or wrong, or no signature matches.
    """
    message_id, sent, given = (headers.get(f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    if not message_id or len(message_id) > LONGEST_ID or not sent or not given:
        raise InvalidSignature("expected the headers webhook-id, webhook-timestamp and webhook-signature")
    if not (sent.isascii() and sent.isdecimal() and len(sent) <= len("99999999999")):
        raise InvalidSignature("webhook-timestamp: expected seconds since 1970")
    at = datetime.fromtimestamp(int(sent), UTC)
    if abs(now - at) > TOLERANCE:
        raise InvalidSignature("webhook-timestamp: too old, or too far in the future")
    signatures = [one.encode() for one in given.split(" ") if one.startswith("v1,")]
    for key in keys:
        wanted = signing.headers([key], message_id, at, body)["webhook-signature"].encode()
        if any(hmac.compare_digest(wanted, one) for one in signatures):
            return
    raise InvalidSignature("webhook-signature: no signature matches")
