"""One-time codes of an authenticator app as a second factor: TOTP of RFC 6238, by pyotp."""

import hmac
from datetime import datetime

import pyotp

ISSUER = "Faultline"
STEP_S = 30
TOLERANCE = 1  # steps before and after the present one, for clocks that differ (RFC 6238, section 5.2)


def new_secret() -> str:
    """A random key of 160 bits in base 32."""
    return pyotp.random_base32()


def address(secret: str, name: str) -> str:
    """The `otpauth:` address that an authenticator app reads."""
    return pyotp.TOTP(secret, name=name, issuer=ISSUER, interval=STEP_S).provisioning_uri()


def matching_step(secret: str, code: str, now: datetime) -> int | None:
    """The time step that a code is of; None if it is not valid now."""
    digits = "".join(code.split())
    step = int(now.timestamp()) // STEP_S
    totp = pyotp.TOTP(secret, interval=STEP_S)
    for one in range(step - TOLERANCE, step + TOLERANCE + 1):
        if hmac.compare_digest(totp.generate_otp(one).encode(), digits.encode("utf-8", "replace")):
            return one
    return None
