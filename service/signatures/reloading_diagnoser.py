"""The classifier with the signatures in use: built anew when an operator's signatures change."""

import threading
from collections.abc import Sequence
from pathlib import Path

from classifiers.contracts import RawCase, Verdict
from classifiers.diagnoser import Diagnoser
from classifiers.model import artifact
from classifiers.model.artifact import ModelError
from classifiers.signatures import Catalogue
from service.errors import ModelUnavailable
from service.signatures.signature_folder import SignatureFolder


class ReloadingDiagnoser:
    """Classifies failures with the signatures in use; safe for use by several threads.

    Args:
        model_dir: the trained model's folder.
        folder: the signatures in use.
        setting: the setting that names the model's folder, for error messages; None if it was named otherwise.

    Raises:
        ModelUnavailable: there is no model, or a foreign one.
    """

    def __init__(self, model_dir: Path, folder: SignatureFolder, *, setting: str | None = None) -> None:
        try:
            self._model = artifact.load(model_dir)
        except ModelError as error:
            raise ModelUnavailable(str(error) if setting is None else f"{setting}: {error}") from None
        self._folder = folder
        self._lock = threading.Lock()
        self._catalogue: Catalogue = folder.current().layered.catalogue
        self._diagnoser = Diagnoser(self._model, self._catalogue)

    @property
    def model(self) -> str:
        """Name and version of the model."""
        return self._diagnoser.model

    @property
    def rules(self) -> str:
        """Name and version of the signatures in use."""
        return self._current().rules

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        """One verdict for each case, in order, all by the same version of the signatures."""
        return self._current().diagnose(cases)

    def _current(self) -> Diagnoser:
        catalogue = self._folder.current().layered.catalogue
        with self._lock:
            if catalogue is not self._catalogue:
                self._diagnoser = Diagnoser(self._model, catalogue)
                self._catalogue = catalogue
            return self._diagnoser
