"""Keyed seals: an HMAC-SHA256 over a model, which only a holder of the key can make.

The digests in a model show damage. A seal shows in addition that nobody without the key has replaced the model.
"""

import hashlib
import hmac
from typing import Final

_PREFIX: Final = "hmac-sha256:"


def seal_of(content: bytes, key: bytes) -> str:
    """The seal of `content`, as `hmac-sha256:` and 64 hexadecimal digits."""
    return _PREFIX + hmac.new(key, content, hashlib.sha256).hexdigest()


def is_seal_of(seal: str, content: bytes, key: bytes) -> bool:
    """Whether `seal` was made of `content` with `key`; takes the same time wherever they differ."""
    return hmac.compare_digest(seal.strip().encode(), seal_of(content, key).encode())
