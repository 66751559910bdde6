"""Prints a hash of evidence, features and fingerprint of many cases; with a folder, by its compiled modules.

usage: python -m tests.classifiers.print_evidence [FOLDER]
"""

import random
import sys
from hashlib import sha256
from pathlib import Path

from service import native_modules

EVERY = 80  # of the captured cases
NOISES = ((20, 4), (200, 0))  # node events and blocks of lines: each case is read without them, and with one of these


def main(folder: str | None) -> None:
    """Print one line a case."""
    assert folder is None or native_modules.use(Path(folder))
    # Only now: what is compiled has to be known before it is imported.
    from classifiers import signatures  # noqa: PLC0415
    from classifiers.case_builder import build_case  # noqa: PLC0415
    from classifiers.composition import training_cases  # noqa: PLC0415
    from classifiers.composition.noise import Noise, add_noise  # noqa: PLC0415
    from classifiers.extraction.extractor import Extractor  # noqa: PLC0415
    from classifiers.extraction.scan import Scanner  # noqa: PLC0415
    from classifiers.fingerprint import fingerprint  # noqa: PLC0415
    from classifiers.model.vectorizer import features  # noqa: PLC0415

    extractor = Extractor(Scanner(signatures.packaged()), lambda line: float(len(line) % 7) - 3.0)
    given = [*training_cases.captured()[::EVERY], *training_cases.long_runs()[::4]]
    noises = [((0, 0), NOISES[number % len(NOISES)]) for number in range(len(given))]
    named = [f"{case.id} {noise}" for case, some in zip(given, noises, strict=True) for noise in some]
    raws = [
        build_case(add_noise(case.event, random.Random(number), Noise(node_events=events, log_blocks=blocks)))
        for number, case in enumerate(given)
        for events, blocks in noises[number]
    ]
    for name, extracted in zip(named, extractor.extract_all(raws), strict=True):
        found = (extracted.case, sorted(features(extracted).items()), fingerprint(extracted, "USER.1"))
        print(name, sha256(repr(found).encode("utf-8", "replace")).hexdigest())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
