"""The hook's write-ahead journal: each action is on disk before it is executed.

There is one file for each request. It is written under a temporary name, synced and renamed; then its folder is synced.
The states in a file are `intended` (about to execute), `acted` (has an outcome that is not reported yet) and
`reported`. Reported files stay in `reported/` for some days, so that a repeated request is answered from the journal
and not executed again. Earlier versions named this state and its folder `told`; both are still read. A damaged file is
moved to `set-aside/` and logged; its request counts as started.
"""

import fcntl
import hashlib
import json
import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, cast, get_args

from service.clock import Clock
from service.contracts.advice import AckResult
from service.errors import ConfigurationError
from service.hooks.request import Failed, Settled

log = logging.getLogger(__name__)

FORMAT = "faultline-intent/1"
RETENTION = timedelta(days=7)
LOOK_AGAIN_S = 0.1
PRUNE_EVERY_S = 600.0
_FORMER_NAME = "told"  # of the state `reported` and its folder
State = Literal["intended", "acted", "reported"]


@dataclass(frozen=True, slots=True)
class Intent:
    """One journal entry. `at`: start time. `good_until`: end of the lease by this machine's clock."""

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
    """The journal files of one hook, in its own folder.

    Args:
        folder: created if missing.
        kind: kind of the hook.
        clock: used for the ages of files.
        patience_s: time to wait for commands of an earlier process, which also lock the folder.

    Raises:
        ConfigurationError: the folder can't be created or written, another hook uses it, or others may write to it: an
            entry of theirs would be carried out like a request of the service.
    """

    def __init__(self, folder: Path, kind: str, clock: Clock, *, patience_s: float = 0.0) -> None:
        self._folder = folder
        self._aside = folder / "set-aside"
        self._reported = folder / "reported"
        self._prune_at = clock.monotonic()
        self._kind = kind
        self._clock = clock
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for below in (self._aside, self._reported):
                below.mkdir(mode=0o700, exist_ok=True)
            _check_owner(folder)
            self._lock = (folder / "lock").open("w")
            self._take(patience_s)
            self._adopt(folder / _FORMER_NAME)
        except OSError as error:
            raise ConfigurationError(f"{folder} can't be used for the journal: {error.strerror}") from None
        for leftover in (*folder.glob("*.tmp"), *self._reported.glob("*.tmp")):  # never renamed: nothing was started
            leftover.unlink()

    def fileno(self) -> int:
        """Return the descriptor that locks the folder; a command that inherits it keeps the lock while it runs."""
        return self._lock.fileno()

    def get(self, request_id: str) -> Intent | None:
        """Return the entry of a request, if any."""
        return self._read(self._path(request_id)) or self._read(self._path(request_id, is_reported=True))

    def is_set_aside(self, request_id: str) -> bool:
        """Return whether the file of the request was set aside: it was started, and its outcome is not known."""
        return any(self._aside.glob(f"{request_id}.json*"))

    def all(self) -> list[Intent]:
        """Return the entries not reported yet, oldest first."""
        found = (self._read(path) for path in self._folder.glob("*.json"))
        return sorted((one for one in found if one is not None), key=lambda one: (one.at, one.request_id))

    def write(self, intent: Intent) -> None:
        """Store the entry of a request; it is on disk when this returns.

        Raises:
            OSError: it could not be written; the previous entry is unchanged.
        """
        path = self._path(intent.request_id, is_reported=intent.state == "reported")
        content = _encode(intent)
        fresh = path.with_suffix(".tmp")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, opened as a Path can't
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        self._sync()
        if intent.state == "reported":
            self._path(intent.request_id).unlink(missing_ok=True)

    def forget(self, request_id: str) -> None:
        """Delete the entry of a request, so that it may start again."""
        for is_reported in (False, True):
            self._path(request_id, is_reported=is_reported).unlink(missing_ok=True)
        self._sync()

    def prune(self) -> None:
        """Delete old reported entries, at intervals."""
        if self._clock.monotonic() < self._prune_at:
            return
        self._prune_at = self._clock.monotonic() + PRUNE_EVERY_S
        oldest = (self._clock.now() - RETENTION).timestamp()
        for path in self._reported.glob("*.json"):
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock on the folder."""
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

    def _adopt(self, former: Path) -> None:
        """Move the reported files of an earlier version to the folder of this one."""
        if not former.is_dir():
            return
        for path in former.glob("*.json"):
            path.replace(self._reported / path.name)
        for leftover in former.glob("*.tmp"):
            leftover.unlink()
        former.rmdir()

    def _path(self, request_id: str, *, is_reported: bool = False) -> Path:
        return (self._reported if is_reported else self._folder) / f"{request_id}.json"

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
        log.error("%s is damaged (%s); it was moved to %s", path.name, why, place)

    def _sync(self) -> None:
        for folder in (self._folder, self._reported, self._aside):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _check_owner(folder: Path) -> None:
    """Group members may write: volumes of Kubernetes belong to a group that only their pod is in."""
    about = folder.lstat()
    if about.st_uid not in {0, os.geteuid()} or about.st_mode & stat.S_IWOTH or stat.S_ISLNK(about.st_mode):
        raise ConfigurationError(f"{folder}: expected a folder of this user that not everybody may write to")


def _encode(intent: Intent) -> bytes:
    plain = asdict(intent)
    for name in ("at", "good_until"):
        plain[name] = plain[name].isoformat()
    text = json.dumps(plain, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({"format": FORMAT, "sha256": digest, "intent": text}).encode() + b"\n"


def _decode(content: bytes) -> Intent:
    """Reverse `_encode`.

    Raises:
        ValueError, KeyError, TypeError: the content is something else.
    """
    envelope = json.loads(content)
    if not isinstance(envelope, dict) or envelope.get("format") != FORMAT:
        raise ValueError(f"expected format {FORMAT}")
    text = envelope["intent"]
    if hashlib.sha256(text.encode()).hexdigest() != envelope["sha256"]:
        raise ValueError("wrong checksum")
    plain = json.loads(text)
    if plain["state"] == _FORMER_NAME:
        plain["state"] = "reported"
    at, good_until = (datetime.fromisoformat(plain.pop(name)) for name in ("at", "good_until"))
    outcome = plain.pop("outcome")
    if plain["state"] not in get_args(State) or (plain["state"] == "intended") is not (outcome is None):
        raise ValueError("expected a known state and its outcome")
    return Intent(**plain, at=at, good_until=good_until, outcome=None if outcome is None else _outcome(outcome))


def _outcome(plain: Mapping[str, Any]) -> Settled | Failed:
    if "error" in plain:
        return Failed(plain["error"], plain["retry_after_s"])
    if plain["result"] not in get_args(AckResult):
        raise ValueError("expected a known result")
    return Settled(cast("AckResult", plain["result"]), plain["detail"], plain["new_job_id"])
