"""Facts survive serialization to JSON."""

from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from service.recommend import facts_wire
from service.recommend.facts import Facts, History, KnownCheckpoint, Lineage, OpenIncident, OptIn, Suspicion
from service.sql.packing import pack, unpack

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
AT = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive here
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
SPAN = st.floats(0, 1e6)


def stored(facts: Facts) -> dict[str, Any]:
    """The facts as they are stored."""
    plain: dict[str, Any] = orjson.loads(orjson.dumps(facts_wire.changed_facts(facts)))
    return plain


def test_default_facts_are_left_out() -> None:
    assert stored(Facts(NOW)) == {"now": "2026-11-20T12:00:00+00:00"}


@given(
    facts=st.builds(
        Facts,
        now=AT,
        lineage=st.builds(Lineage, key=TEXT, first_at=st.none() | AT, attempts=st.integers(1, 99)),
        history=st.just(History()) | st.builds(History, resolved_by=st.dictionaries(TEXT, st.integers(0, 99))),
        suspicion=st.dictionaries(
            TEXT, st.builds(Suspicion, rate_ratio=SPAN, low=SPAN, high=SPAN, exposure_h=SPAN, failures=SPAN)
        ),
        incident=st.none()
        | st.builds(OpenIncident, id=st.integers(1, 99), key=TEXT, opened_at=AT, turn_at=st.none() | AT),
        opt_in=st.builds(OptIn, mode=st.sampled_from(["auto", "never"]), source=TEXT),
        dependents=st.lists(TEXT, max_size=3).map(tuple),
        checkpoint=st.none()
        | st.builds(KnownCheckpoint, uri=st.none() | TEXT, step=st.none() | st.integers(0, 9), at=st.none() | AT),
    )
)
@settings(max_examples=60, deadline=None)
def test_facts_survive_serialization(facts: Facts) -> None:
    assert facts_wire.from_wire(stored(facts)) == facts


def test_invalid_text_is_cleaned_before_storage() -> None:
    known = Facts(NOW, opt_in=OptIn("advise", "label \ud800"), lineage=Lineage(key="l1", first_at=NOW))
    back = facts_wire.from_wire(unpack(pack(facts_wire.changed_facts(known))))
    assert (back.lineage, back.opt_in.mode) == (known.lineage, "advise")


def test_facts_of_an_earlier_release_are_read_without_those_that_no_rule_asks_for() -> None:
    known = stored(Facts(NOW, lineage=Lineage(key="l1", attempts=2)))
    known["lineage"] |= {"gpu_hours_spent": 1.5, "last_progress_step": 7, "last_checkpoint": "s3://c/7"}
    known["lineage"] |= {"last_outcome": "succeeded"}
    assert facts_wire.from_wire(known) == Facts(NOW, lineage=Lineage(key="l1", attempts=2))
