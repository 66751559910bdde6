"""Logged-in browsers: a random cookie stands for the token that was pasted once. Kept in memory: a restart logs out."""

import secrets
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.clock import Clock

COOKIE = "faultline_session"
FORM_COOKIE = "faultline_form"
LASTS = timedelta(hours=12)
MOST = 1_000


@dataclass(frozen=True, slots=True)
class _Session:
    secret: str
    until: datetime


@dataclass(slots=True)
class Sessions:
    """The sessions of one process. Safe to share between threads."""

    clock: Clock
    _sessions: dict[str, _Session] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, secret: str) -> str:
        """A new session for the holder of an API token's secret; the cookie's value. The oldest makes room."""
        key, now = secrets.token_urlsafe(32), self.clock.now()
        with self._lock:
            for old in [name for name, session in self._sessions.items() if session.until <= now]:
                del self._sessions[old]
            while len(self._sessions) >= MOST:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[key] = _Session(secret, now + LASTS)
        return key

    def secret(self, key: str) -> str | None:
        """The token's secret of a session that has not run out."""
        with self._lock:
            session = self._sessions.get(key)
        return session.secret if session is not None and session.until > self.clock.now() else None

    def close(self, key: str) -> None:
        """Log out."""
        with self._lock:
            self._sessions.pop(key, None)
