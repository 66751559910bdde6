"""Signatures of Standard Webhooks 1.0.0: HMAC-SHA256 over id, time and body; several keys while one is rotated.

Plain hmac, as the reference library reads the clock face of an aware time that is not UTC.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64  # bytes of a key, as the specification asks


def key_of(secret: str) -> bytes:
    """The key in a secret such as `whsec_<base64>`.

    Raises:
        ValueError: it is no such secret, or its key is not 24 to 64 bytes long. Does not repeat it.
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
    """The three headers of one try at the instant `at`; a signature for each key, the first one first."""
    seconds = int(at.timestamp())
    signed = f"{message_id}.{seconds}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
