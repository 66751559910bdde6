"""The signatures in use: read at the start, and again when files of the folder change."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from classifiers.extraction.scan import Scanner
from classifiers.signatures import CatalogueError
from service.clock import Clock
from service.errors import ConfigurationError
from service.signatures import operator_catalogue
from service.signatures.operator_catalogue import LayeredCatalogue

POLL_S: Final = 5.0
_LABELS: Final = 8_192  # lines whose label is kept: lists of failures show the same ones again
SETTING: Final = "FAULTLINE_SIGNATURES_DIR"
_log = logging.getLogger(__name__)
_Contents = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True)
class SignaturesInUse:
    """The catalogue in use.

    Attributes:
        layered: packaged and own entries.
        read_at: when the own entries were read, None without a folder.
        problem: why the newest files are not in use, None if they are.
    """

    layered: LayeredCatalogue
    read_at: datetime | None = None
    problem: str | None = None

    @cached_property
    def label_of(self) -> Callable[[str], str | None] | None:
        """What finds the label of the own entry of a beginning that a line matches; None without own entries."""
        if not self.layered.own:
            return None
        scanner = Scanner(self.layered.own_only())

        @lru_cache(_LABELS)
        def label(line: str) -> str | None:
            hits = (hit for one in scanner.scan(line) for hit in one.hits)
            return next((hit.title for hit in hits if hit.role == "initiating" and not hit.needs), None)

        return label


class SignatureFolder:
    """Watches one folder; safe for use by several threads. A broken new version keeps the one in use.

    Args:
        folder: the folder, None for the packaged catalogue alone.
        clock: gives the time of reading; the folder is looked at every `POLL_S` at most.

    Raises:
        ConfigurationError: the folder holds a wrong file; the message names file, entry and field.
    """

    def __init__(self, folder: Path | None, clock: Clock) -> None:
        self.folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._looked_at = clock.monotonic()
        if folder is None:
            self._contents: _Contents | None = None
            self._in_use = SignaturesInUse(operator_catalogue.packaged_only())
            return
        try:
            self._contents = _contents(folder)
            self._in_use = SignaturesInUse(operator_catalogue.read(folder), clock.now())
        except CatalogueError as error:
            raise ConfigurationError(f"{SETTING}: {error}") from None

    def current(self) -> SignaturesInUse:
        """Return the signatures in use, read again if the folder has changed."""
        if self.folder is None:
            return self._in_use
        with self._lock:
            now = self._clock.monotonic()
            if now - self._looked_at >= POLL_S:
                self._looked_at = now
                self._read_if_changed(self.folder)
            return self._in_use

    def _read_if_changed(self, folder: Path) -> None:
        before = self._in_use
        contents: _Contents | None = None
        try:
            contents = _contents(folder)
            if contents == self._contents:
                return
            layered = operator_catalogue.read(folder)
        except CatalogueError as error:
            self._contents = contents  # None: a folder that is there again, unchanged, is read once more
            problem = str(error)
            if problem != before.problem:
                _log.error("%s: %s; the signatures read before stay in use", SETTING, problem)
            self._in_use = replace(before, problem=problem)
            return
        self._contents = contents
        self._in_use = SignaturesInUse(layered, self._clock.now())
        _log.info("%s: %d own signatures read again", SETTING, len(layered.own))


def _contents(folder: Path) -> _Contents:
    """Return name, inode, size and time of change of each file: they differ if a file was changed or replaced."""
    found = []
    for path in operator_catalogue.files_of(folder):
        try:
            state = path.stat()
        except OSError as error:
            raise CatalogueError(f"{path.relative_to(folder)}: {error.strerror or error}") from None
        found.append((str(path), state.st_ino, state.st_size, state.st_mtime_ns))
    return tuple(found)
