"""The probability from which a failure category is reported, fitted on kinds that the first stage has not seen."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from classifiers.data.labelled_cases import NONE
from classifiers.model import constants
from classifiers.model.samples import Sample
from classifiers.model.training_table import label_shares


def fit_category_threshold(samples: Sequence[Sample], shares: NDArray[np.floating]) -> float:
    """The lowest threshold at which few failures without a category get one, within `CATEGORY_THRESHOLD_RANGE`.

    Logs of real programs, composed logs and reports by people are worded differently and have different shares of false
    reports. The threshold is the greatest that one of them needs, so that none is reported on more often than
    `CATEGORY_FALSE_REPORTS` allows.

    Args:
        samples: the held-out samples. Those to which a category may apply, and whose label is a guess, are left out.
        shares: of each sample the probability that a category applies, 0 where none can be reported; shape (samples,).
    """
    parts: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for sample, share in zip(samples, shares.tolist(), strict=True):
        if not sample.is_secondary("category") and label_shares(sample, "category") == [(NONE, 1.0)]:
            provenance = sample.case.provenance
            part = str(provenance.get("origin")), str(provenance.get("medium"))
            parts[part].append((share, sample.weight_for("category")))
    needed = [_needed(part) for part in parts.values() if len(part) >= constants.CATEGORY_PART_SAMPLES]
    if not needed:
        return constants.CATEGORY_THRESHOLD
    least, most = constants.CATEGORY_THRESHOLD_RANGE
    return round(min(most, max(least, *needed)), 4)


def _needed(part: Sequence[tuple[float, float]]) -> float:
    """The lowest threshold above which at most the allowed share of the weight lies."""
    rows = np.array(sorted(part, reverse=True))
    above = np.cumsum(rows[:, 1]) / rows[:, 1].sum()
    place = int(np.searchsorted(above, constants.CATEGORY_FALSE_REPORTS, side="right"))
    # The sample at `place` is the first that may not be reported: the threshold is the next number above its share.
    return float(np.nextafter(rows[min(place, len(rows) - 1), 0], 1.0))
