"""Signatures of Standard Webhooks 1.0.0: HMAC-SHA256 over id, time and body; several keys during a rotation.

Computed with hmac, because the reference library ignores the time zone of an aware time.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64  # bytes of a key, by the specification


def key_of(secret: str) -> bytes:
    """The key in a secret such as `whsec_<base64>`.

    Raises:
        ValueError: it is not such a secret, or its key is not 24 to 64 bytes long. The message does not repeat it.
    """
    text = secret.strip().removeprefix(PREFIX)
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"expected {PREFIX} and base64") from None
    if not SHORTEST <= len(key) <= LONGEST:
        raise ValueError(f"expected a key of {SHORTEST} to {LONGEST} bytes, got {len(key)}")
    return key


def headers(keys: Sequence[bytes], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The three headers of one attempt at the time `at`; one signature per key, in their order."""
    seconds = int(at.timestamp())
    signed = f"{message_id}.{seconds}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
