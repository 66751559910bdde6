"""The site layer in use, as every process knows it: read again when a promotion is stored."""

import logging
import threading
from typing import Final

from classifiers.model.site.layer import SiteLayer, SiteLayerError, parse
from service.clock import Clock
from service.db.session import Store
from service.errors import DamagedData, NotFound, Unavailable
from service.learning.records import PACKAGED

POLL_S: Final = 5.0
_log = logging.getLogger(__name__)


class ActiveLayer:
    """Watches the promotions; safe for use by several threads. A layer that can't be read leaves the one in use.

    Args:
        store: the database; it is asked every `POLL_S` at most.
        clock: the current time.
        key: the key of seals; a layer without the seal of a promotion is not used. None: seals are not checked.
    """

    def __init__(self, store: Store, clock: Clock, key: bytes | None = None) -> None:
        self._store = store
        self._clock = clock
        self._key = key
        self._lock = threading.Lock()
        self._looked_at: float | None = None
        self._promotion = 0
        self._layer: SiteLayer | None = None

    def current(self, base: str) -> SiteLayer | None:
        """The layer in use, None for the packaged model alone; at most `POLL_S` old while the database answers.

        Args:
            base: the id of the model that the layer must be fitted on; one of another model is not used.
        """
        with self._lock:
            now = self._clock.monotonic()
            if self._looked_at is None or now - self._looked_at >= POLL_S:
                self._looked_at = now
                self._read(base)
            return self._layer

    def _read(self, base: str) -> None:
        try:
            with self._store.reading() as reading:
                promotion = reading.site_layers.last_promotion()
                if promotion == self._promotion:
                    return
                name = reading.site_layers.active()
                stored = None if name == PACKAGED else reading.site_layers.get(name)
            accepted = stored is None or stored.is_accepted(self._key)  # before its text is read
            layer = None if stored is None or not accepted else parse(stored.text)
        except (DamagedData, NotFound, SiteLayerError, Unavailable) as error:
            _log.warning("the site layer in use can't be read, the one before stays: %s", error)
            return
        self._promotion = promotion
        if not accepted:
            _log.error("site layer %s has no seal of FAULTLINE_MODEL_KEY as promoted and is not used", name)
        if layer is not None and layer.about.get("base") != base:
            _log.error("site layer %s was fitted on another model and is not used: run faultline retrain", name)
            layer = None
        self._layer = layer
        _log.info("model in use: %s", PACKAGED if layer is None else name)
