"""Words of the evidence: written with each verdict, searched with what the database has for it.

SQLite searches with FTS5, PostgreSQL with a tsvector under a GIN index. Both are handed the same words, cut here, so
that they find the same: runs of letters and digits in lower case, so that `flash_attn` is two words, as is
`index.json`. A word asked for is found by its beginning.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, cast, column, literal, literal_column, select, table, text
from sqlalchemy.dialects.postgresql import TSQUERY

from service.sql import bulk
from service.sql.types import clean

MOST_WORDS = 300  # distinct ones a failure; evidence is a find_rare dozen lines
LONGEST_WORD = 40  # characters; what is longer is a digest or noise, and is found by its beginning
MOST_ASKED = 12
PREFIX_FROM = 3  # characters; shorter words are matched whole
_WORD = re.compile(r"[^\W_]+")
_CHARACTERS = 20_000  # of the evidence that are read for words


def split_words(texts: str) -> list[str]:
    """The distinct words of a text, in order of appearance."""
    found = dict.fromkeys(_WORD.findall(clean(texts).lower()))
    if any(len(word) > LONGEST_WORD for word in found):
        found = dict.fromkeys(word[:LONGEST_WORD] for word in found)
    return list(found)[:MOST_WORDS]


def query_words(q: str) -> tuple[str, ...]:
    """The words of a question."""
    return tuple(split_words(q))[:MOST_ASKED]


def searchable_text(verdict: Mapping[str, Any]) -> str:
    """What of a verdict is searched: the text of its evidence."""
    return "\n".join(str(line.get("text") or "") for line in verdict.get("evidence") or ())[:_CHARACTERS]


def add(connection: Connection, texts: Iterable[tuple[int, str]]) -> None:
    """Index the texts of failures that are not there yet."""
    rows = [(failure_id, " ".join(words)) for failure_id, searched in texts if (words := split_words(searched))]
    if not rows:
        return
    if bulk.is_postgres(connection):
        connection.exec_driver_sql(
            "INSERT INTO evidence_words SELECT id, array_to_tsvector(string_to_array(words, ' ')) "
            "FROM unnest(%s::bigint[], %s::text[]) AS given (id, words) "
            "ON CONFLICT (failure_id) DO UPDATE SET words = excluded.words",
            ([row[0] for row in rows], [row[1] for row in rows]),
        )
    else:
        connection.exec_driver_sql("INSERT INTO evidence_words (rowid, words) VALUES (?, ?)", rows)


def replace(connection: Connection, failure_id: int, texts: str) -> None:
    """Index a failure's text anew."""
    remove(connection, [failure_id])
    add(connection, [(failure_id, texts)])


def remove(connection: Connection, failure_ids: Sequence[int]) -> None:
    """Forget failures."""
    if not failure_ids:
        return
    if bulk.is_postgres(connection):
        connection.exec_driver_sql("DELETE FROM evidence_words WHERE failure_id = ANY(%s)", (list(failure_ids),))
    else:
        marks = ", ".join("?" * len(failure_ids))
        connection.exec_driver_sql(f"DELETE FROM evidence_words WHERE rowid IN ({marks})", tuple(failure_ids))  # noqa: S608 - marks alone


def find_rare(connection: Connection, words: Sequence[str], *, most: int) -> list[int] | None:
    """Failures whose evidence has all these words, in no order; None where more than `most` have to be looked at.

    Neither database stops early at the beginning of a word: whether a word is common is asked of the whole word first,
    which both answer from a small part of its list. Those with the other words are then looked at one by one.
    """
    common = [word for word in words if _common(connection, word, most)]
    rare = [word for word in words if word not in common]
    if not rare:
        return None
    found = matching(connection, rare, most=most + 1)
    if len(found) > most:
        return None
    return _with(connection, found, common) if common and found else found


def _with(connection: Connection, failure_ids: Sequence[int], words: Sequence[str]) -> list[int]:
    """Those of some failures whose evidence has all these words as well."""
    key = "failure_id" if bulk.is_postgres(connection) else "rowid"
    some = table("evidence_words", column(key))
    wanted = select(some.c[key]).where(
        some.c[key].in_(failure_ids), has_words(connection, f"evidence_words.{key}", words)
    )
    return list(connection.execute(wanted).scalars())


def _common(connection: Connection, word: str, most: int) -> bool:
    if bulk.is_postgres(connection):
        # A sample of the index's list, by which nothing but its length is judged.
        connection.exec_driver_sql(f"SET LOCAL gin_fuzzy_search_limit = {4 * most}")
        wanted = text(
            "SELECT count(*) FROM (SELECT 1 FROM evidence_words WHERE words @@ CAST(:q AS tsquery) LIMIT :n) x"
        )
        asked = f"'{word}'"
    else:
        wanted = text("SELECT count(*) FROM (SELECT 1 FROM evidence_words WHERE evidence_words MATCH :q LIMIT :n)")
        asked = f'"{word}"'
    many = connection.execute(wanted, {"q": asked, "n": most + 1}).scalar_one()
    if bulk.is_postgres(connection):
        connection.exec_driver_sql("SET LOCAL gin_fuzzy_search_limit = 0")
    return bool(many > most)


def matching(connection: Connection, words: Sequence[str], *, most: int) -> list[int]:
    """Failures whose evidence has all these words, `most` of them at most, in no order."""
    if bulk.is_postgres(connection):
        wanted = text("SELECT failure_id FROM evidence_words WHERE words @@ CAST(:q AS tsquery) LIMIT :most")
        asked = " & ".join(f"'{word}'{':*' if len(word) >= PREFIX_FROM else ''}" for word in words)
    else:
        wanted = text("SELECT rowid FROM evidence_words WHERE evidence_words MATCH :q LIMIT :most")
        asked = " ".join(f'"{word}"{" *" if len(word) >= PREFIX_FROM else ""}' for word in words)
    return list(connection.execute(wanted, {"q": asked, "most": most}).scalars())


def has_words(connection: Connection, here: str, words: Sequence[str]) -> ColumnElement[bool]:
    """A condition: the evidence of the failure whose id stands in column `here` has all these words.

    A scalar query on purpose: no planner turns it into a join that reads every failure with a common word.
    """
    if bulk.is_postgres(connection):
        asked = " & ".join(f"'{word}'{':*' if len(word) >= PREFIX_FROM else ''}" for word in words)
        one = f"(SELECT searched.words FROM evidence_words AS searched WHERE searched.failure_id = {here})"  # noqa: S608 - a column of ours
        found: ColumnElement[bool] = literal_column(one).op("@@", is_comparison=True)(cast(literal(asked), TSQUERY))
        return found
    own = f"(SELECT ' ' || searched.words || ' ' FROM evidence_words AS searched WHERE searched.rowid = {here})"  # noqa: S608 - as above
    searched: ColumnElement[Any] = literal_column(own)
    conditions = [
        searched.contains(f" {word}" if len(word) >= PREFIX_FROM else f" {word} ", autoescape=True) for word in words
    ]
    return and_(literal(value=True), *conditions)
