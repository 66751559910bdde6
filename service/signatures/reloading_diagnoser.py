"""The classifier with the signatures and the site layer in use: built again when one of them changes."""

import grp
import logging
import os
import pwd
import stat
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from classifiers.contracts import RawCase, Verdict
from classifiers.diagnoser import Diagnoser
from classifiers.model import artifact
from classifiers.model.artifact import Model, ModelError, SealError
from classifiers.model.site.layer import SiteLayer
from classifiers.signatures import Catalogue
from service.errors import ModelUnavailable
from service.signatures.signature_folder import SignatureFolder

log = logging.getLogger(__name__)
UNREADABLE: Final = "an error in the classifier prevented their use"


def load_model(folder: Path, key: bytes | None, *, setting: str | None = None) -> Model:
    """The model of a folder; `key` and `setting` as for `ReloadingDiagnoser`.

    Raises:
        ModelUnavailable: there is no model, a foreign one, or one that is not sealed with the key.
    """
    try:
        return artifact.load(folder, key)
    except ModelError as error:
        text = str(error) if setting is None else f"{setting}: {error}"
        if isinstance(error, SealError):
            text += " in FAULTLINE_MODEL_KEY: check where the model is from, then run faultline model seal"
        raise ModelUnavailable(text) from None


def writable_by_others(folder: Path, key: bytes | None) -> str | None:
    """What lets others than its owner replace a model that has no keyed seal, as text; None if nothing does.

    Args:
        folder: the model's folder; it, its files and the folders above it are looked at.
        key: the key of seals; with one, a replaced model is refused, whoever wrote it.
    """
    whole = folder.resolve()
    files = (whole / name for name in (artifact.MANIFEST, artifact.PARAMETERS, artifact.WEIGHTS))
    open_to_others = [one for one in (whole, *files) if _has_other_writers(one)]
    # In a folder with the sticky bit, such as /tmp, nobody renames what belongs to others.
    open_to_others += [one for one in whole.parents if _has_other_writers(one, but_with=stat.S_ISVTX)]
    if key is not None or not open_to_others:
        return None
    return (
        f"others than its owner may write to {open_to_others[0]} and replace the model: take that right away, or set "
        "FAULTLINE_MODEL_KEY and run faultline model seal"
    )


def _has_other_writers(path: Path, but_with: int = 0) -> bool:
    """Whether others than the owner may write to a file or folder that does not have the mode bit `but_with`."""
    try:
        found = path.stat()
    except OSError:  # loading says what is missing
        return False
    if found.st_mode & but_with:
        return False
    return bool(found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_private(found)))


def _is_private(found: os.stat_result) -> bool:
    """Whether the group of a file has its owner as the only member, as many systems make one for each user."""
    try:
        owner, group = pwd.getpwuid(found.st_uid), grp.getgrgid(found.st_gid)
    except KeyError:
        return False
    return owner.pw_gid == found.st_gid and owner.pw_name == group.gr_name and set(group.gr_mem) <= {owner.pw_name}


class ReloadingDiagnoser:
    """Classifies failures with the signatures in use; safe for use by several threads.

    Args:
        model_dir: the trained model's folder.
        folder: the signatures in use.
        layer: returns the site layer in use of the model with an id, None for none; None: there is never one.
        setting: the setting that names the model's folder, for error messages; None if it was named otherwise.
        key: the key of the model's seal; None: the seal is not checked.

    Raises:
        ModelUnavailable: there is no model, a foreign one, or one that is not sealed with the key.
    """

    def __init__(
        self,
        model_dir: Path,
        folder: SignatureFolder,
        *,
        layer: Callable[[str], SiteLayer | None] | None = None,
        setting: str | None = None,
        key: bytes | None = None,
    ) -> None:
        self._model = load_model(model_dir, key, setting=setting)
        self._folder = folder
        self._layer_in_use = layer
        self._layer: SiteLayer | None = None
        self._lock = threading.Lock()
        self._catalogue: Catalogue = folder.current().layered.catalogue
        self._diagnoser = Diagnoser(self._model, self._catalogue)

    @property
    def model(self) -> str:
        """Name and version of the model, with the id of the site layer if one is in use."""
        return self._current().model

    @property
    def rules(self) -> str:
        """Name and version of the signatures in use."""
        return self._current().rules

    @property
    def packaged(self) -> Model:
        """The model without a site layer."""
        return self._model

    @property
    def catalogue(self) -> Catalogue:
        """The signatures in use."""
        return self._folder.current().layered.catalogue

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        """One verdict for each case, in order, all by the same version of the signatures.

        Where something in the logs or node events of a case raises an error, its verdict is that of the scheduler's
        facts alone, and says so in `missing`.
        """
        diagnoser = self._current()
        try:
            return diagnoser.diagnose(cases)
        except Exception:
            log.exception("a case of %d cannot be classified", len(cases))
            return [_diagnosed_alone(diagnoser, case) for case in cases]

    def _current(self) -> Diagnoser:
        catalogue = self._folder.current().layered.catalogue
        layer = None if self._layer_in_use is None else self._layer_in_use(self._model.id)
        with self._lock:
            if catalogue is not self._catalogue or layer is not self._layer:
                self._diagnoser = Diagnoser(self._model, catalogue, layer)
                self._catalogue, self._layer = catalogue, layer
            return self._diagnoser


def _diagnosed_alone(diagnoser: Diagnoser, case: RawCase) -> Verdict:
    try:
        [verdict] = diagnoser.diagnose([case])
    except Exception as error:  # noqa: BLE001 - of whatever is in the logs: no event goes without a verdict for it
        kind = type(error).__name__
        log.error("job %s: its logs and node events cannot be classified: %s", case.job.job_id, kind)  # noqa: TRY400
        [verdict] = diagnoser.diagnose([RawCase(case.job)])
        return replace(verdict, missing=(f"logs and node events: {UNREADABLE} ({kind})",))
    return verdict
