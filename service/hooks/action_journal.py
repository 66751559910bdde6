"""The hook's memory: what it is about to do, on disk before it is done.

One file a request, written whole under another name, synced, renamed, and its folder synced. A file says `intended`
(about to act), `acted` (with its outcome; the service is not told yet) or `told`. Told ones lie in `told/` for a while,
so that a request that comes back is answered from memory and not carried out again. A file that is not what was
written is moved to `set-aside/` and reported; its request counts as begun.
"""

import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, cast, get_args

from service.clock import Clock
from service.errors import ConfigurationError
from service.hooks.request import Failed, Result, Settled

log = logging.getLogger(__name__)

FORMAT = "faultline-intent/1"
RETENTION = timedelta(days=7)
LOOK_AGAIN_S = 0.1
PRUNE_EVERY_S = 600.0
State = Literal["intended", "acted", "told"]


@dataclass(frozen=True, slots=True)
class Intent:
    """One file. `at`: when it was begun. `good_until`: the lease's end then, by this machine's clock."""

    request_id: str
    kind: str
    cluster: str
    job_id: str
    lease_token: str
    state: State
    at: datetime
    good_until: datetime
    request: Mapping[str, Any]
    outcome: Settled | Failed | None = None


class Journal:
    """The files of one hook in one folder, which it has to itself.

    Args:
        folder: made where it is not there.
        kind: whose it is.
        clock: for the ages of files.
        patience_s: how long to wait for an earlier life's last commands, which hold the folder too.

    Raises:
        ConfigurationError: the folder can't be made or written, or another hook uses it.
    """

    def __init__(self, folder: Path, kind: str, clock: Clock, *, patience_s: float = 0.0) -> None:
        self._folder = folder
        self._aside = folder / "set-aside"
        self._told = folder / "told"
        self._prune_at = clock.monotonic()
        self._kind = kind
        self._clock = clock
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for below in (self._aside, self._told):
                below.mkdir(mode=0o700, exist_ok=True)
            self._lock = (folder / "lock").open("w")
            self._take(patience_s)
        except OSError as error:
            raise ConfigurationError(f"{folder} can't be used for the hook's memory: {error.strerror}") from None
        for leftover in (*folder.glob("*.tmp"), *self._told.glob("*.tmp")):  # never renamed: nothing was begun
            leftover.unlink()

    def fileno(self) -> int:
        """The descriptor that holds the folder; a command that inherits it holds the folder as long as it runs."""
        return self._lock.fileno()

    def get(self, request_id: str) -> Intent | None:
        """What is known of a request."""
        return self._read(self._path(request_id)) or self._read(self._path(request_id, told=True))

    def tainted(self, request_id: str) -> bool:
        """Whether the request's file was set aside: it was begun, and nothing more is known."""
        return any(self._aside.glob(f"{request_id}.json*"))

    def all(self) -> list[Intent]:
        """What was not told yet, oldest first."""
        found = (self._read(path) for path in self._folder.glob("*.json"))
        return sorted((one for one in found if one is not None), key=lambda one: (one.at, one.request_id))

    def write(self, intent: Intent) -> None:
        """Make `intent` what is known of its request; it is on disk when this returns.

        Raises:
            OSError: it could not be written; what was known before still is.
        """
        path = self._path(intent.request_id, told=intent.state == "told")
        content = _encode(intent)
        fresh = path.with_suffix(".tmp")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, opened as a Path can't
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        self._sync()
        if intent.state == "told":
            self._path(intent.request_id).unlink(missing_ok=True)

    def forget(self, request_id: str) -> None:
        """Nothing is known of the request any more: it may be begun anew."""
        for told in (False, True):
            self._path(request_id, told=told).unlink(missing_ok=True)
        self._sync()

    def prune(self) -> None:
        """Now and then, forget what was told long ago."""
        if self._clock.monotonic() < self._prune_at:
            return
        self._prune_at = self._clock.monotonic() + PRUNE_EVERY_S
        oldest = (self._clock.now() - RETENTION).timestamp()
        for path in self._told.glob("*.json"):
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the folder to others."""
        self._lock.close()

    def _take(self, patience_s: float) -> None:
        deadline = self._clock.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._clock.monotonic() >= deadline:
                    self._lock.close()
                    raise ConfigurationError(
                        f"{self._folder} is in use by another hook: each needs a folder of its own"
                    ) from None
                self._clock.sleep(LOOK_AGAIN_S)
            else:
                return

    def _path(self, request_id: str, *, told: bool = False) -> Path:
        return (self._told if told else self._folder) / f"{request_id}.json"

    def _read(self, path: Path) -> Intent | None:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            intent = _decode(content)
        except (ValueError, KeyError, TypeError) as error:
            self._set_aside(path, str(error))
            return None
        if intent.kind != self._kind or f"{intent.request_id}.json" != path.name:
            self._set_aside(path, f"expected a request of a {self._kind} hook, named as its file")
            return None
        return intent

    def _set_aside(self, path: Path, why: str) -> None:
        place = self._aside / path.name
        while place.exists():
            place = place.with_name(place.name + "+")
        path.replace(place)
        self._sync()
        log.error("%s is not as it was written (%s); it was moved to %s", path.name, why, place)

    def _sync(self) -> None:
        for folder in (self._folder, self._told, self._aside):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _encode(intent: Intent) -> bytes:
    plain = asdict(intent)
    for name in ("at", "good_until"):
        plain[name] = plain[name].isoformat()
    text = json.dumps(plain, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({"format": FORMAT, "sha256": digest, "intent": text}).encode() + b"\n"


def _decode(content: bytes) -> Intent:
    """What `_encode` was given.

    Raises:
        ValueError, KeyError, TypeError: it is something else.
    """
    envelope = json.loads(content)
    if not isinstance(envelope, dict) or envelope.get("format") != FORMAT:
        raise ValueError(f"expected format {FORMAT}")
    text = envelope["intent"]
    if hashlib.sha256(text.encode()).hexdigest() != envelope["sha256"]:
        raise ValueError("its checksum is another")
    plain = json.loads(text)
    at, good_until = (datetime.fromisoformat(plain.pop(name)) for name in ("at", "good_until"))
    outcome = plain.pop("outcome")
    if plain["state"] not in get_args(State) or (plain["state"] == "intended") is not (outcome is None):
        raise ValueError("expected a state that is known, and its outcome")
    return Intent(**plain, at=at, good_until=good_until, outcome=None if outcome is None else _outcome(outcome))


def _outcome(plain: Mapping[str, Any]) -> Settled | Failed:
    if "error" in plain:
        return Failed(plain["error"], plain["retry_after_s"])
    if plain["result"] not in get_args(Result):
        raise ValueError("expected a result that is known")
    return Settled(cast("Result", plain["result"]), plain["detail"], plain["new_job_id"])
