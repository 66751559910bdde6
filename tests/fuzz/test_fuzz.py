"""A short round of mutated records; `make fuzz` runs long ones."""

from pathlib import Path

from service.formats import recognise
from service.settings import default_model_dir
from tests.fuzz.mutations import Mutator, encoded, native
from tests.fuzz.rounds import Fuzz
from tests.labs.need import missing

SEED = 17


def test_each_mutated_record_is_stored_skipped_or_a_dead_letter_and_none_twice(tmp_path: Path) -> None:
    if not (default_model_dir() / "manifest.json").exists():
        missing("there is no trained model (make install)")
    fuzz = Fuzz(tmp_path, SEED, default_model_dir())
    result = fuzz.run(600, size=300)
    fuzz.close()
    assert result.wrong == []
    assert min(result.outcomes[name] for name in ("events", "events with problems", "skipped", "dead letters")) > 10


def test_the_same_seed_gives_the_same_records_and_another_one_others() -> None:
    first, second, other = Mutator(SEED), Mutator(SEED), Mutator(SEED + 1)
    records = [first.record() for _ in range(50)]
    assert records == [second.record() for _ in range(50)]
    assert records != [other.record() for _ in range(50)]


def test_the_unchanged_native_record_is_right() -> None:
    event = recognise.parse(encoded(native(1)))
    assert event.intake_problems == ()  # type: ignore[union-attr]
