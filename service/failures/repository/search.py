"""Full-text search of the evidence, with the index of each database; and the failures of a job by its id or name.

SQLite searches with FTS5, PostgreSQL with a tsvector and a GIN index. Both get the same words, split here, so
that they find the same rows: runs of letters and digits in lower case, so that `flash_attn` is two words, as is
`index.json`. A search word matches words that begin with it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, cast, column, func, literal, literal_column, select, table, text
from sqlalchemy.dialects.postgresql import TSQUERY

from service.failures.tables import failures
from service.jobs.tables import jobs
from service.sql import bulk
from service.sql.types import clean

MOST_WORDS = 300  # distinct words of a failure; evidence is a few dozen lines
LONGEST_WORD = 40  # characters; longer words are digests or noise and are found by their prefix
WORDS_MOST = 12
PREFIX_FROM = 3  # characters; shorter words are matched whole
_WORD = re.compile(r"[^\W_]+")
_CHARACTERS = 20_000  # of the evidence that are indexed


def split_words(texts: str) -> list[str]:
    """The distinct words of a text, in order of appearance."""
    found = dict.fromkeys(_WORD.findall(clean(texts).lower()))
    if max(map(len, found), default=0) > LONGEST_WORD:
        found = dict.fromkeys(word[:LONGEST_WORD] for word in found)
    return list(found)[:MOST_WORDS]


def query_words(q: str) -> tuple[str, ...]:
    """The words of a search query."""
    return tuple(split_words(q))[:WORDS_MOST]


def searchable_text(verdict: Mapping[str, Any]) -> str:
    """The searchable text of a verdict: the text of its evidence."""
    return "\n".join(str(line.get("text") or "") for line in verdict.get("evidence") or ())[:_CHARACTERS]


def add(connection: Connection, texts: Iterable[tuple[int, str]]) -> None:
    """Index the texts of failures that are not indexed yet."""
    rows = [(failure_id, " ".join(words)) for failure_id, text in texts if (words := split_words(text))]
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


def remove(connection: Connection, failure_ids: Sequence[int]) -> None:
    """Remove failures from the index."""
    if not failure_ids:
        return
    if bulk.is_postgres(connection):
        connection.exec_driver_sql("DELETE FROM evidence_words WHERE failure_id = ANY(%s)", (list(failure_ids),))
    else:
        marks = ", ".join("?" * len(failure_ids))
        connection.exec_driver_sql(f"DELETE FROM evidence_words WHERE rowid IN ({marks})", tuple(failure_ids))  # noqa: S608 - marks alone


def find_rare(connection: Connection, words: Sequence[str], *, most: int) -> list[int] | None:
    """Failures whose evidence contains all words, unordered; None if more than `most` would have to be examined.

    Neither database stops early on a prefix match. Whether a word is common is tested with the whole word first,
    which both answer from a small part of its posting list. Rows with the other words are then examined one by one.
    """
    common = [word for word in words if _common(connection, word, most)]
    rare = [word for word in words if word not in common]
    if not rare:
        return None
    found = matching(connection, rare, most=most + 1)
    if len(found) > most:
        return None
    return with_words(connection, found, common) if common and found else found


def with_words(connection: Connection, failure_ids: Sequence[int], words: Sequence[str]) -> list[int]:
    """The failures among `failure_ids` whose evidence contains all words."""
    key = "failure_id" if bulk.is_postgres(connection) else "rowid"
    some = table("evidence_words", column(key))
    wanted = select(some.c[key]).where(
        some.c[key].in_(failure_ids), has_words(connection, f"evidence_words.{key}", words)
    )
    return list(connection.execute(wanted).scalars())


def _common(connection: Connection, word: str, most: int) -> bool:
    if bulk.is_postgres(connection):
        # A sample of the posting list is enough to judge its length.
        connection.exec_driver_sql(f"SET LOCAL gin_fuzzy_search_limit = {4 * most}")
        wanted = text(
            "SELECT count(*) FROM (SELECT 1 FROM evidence_words WHERE words @@ CAST(:q AS tsquery) LIMIT :n) x"
        )
        query = f"'{word}'"
    else:
        wanted = text("SELECT count(*) FROM (SELECT 1 FROM evidence_words WHERE evidence_words MATCH :q LIMIT :n)")
        query = f'"{word}"'
    found = connection.execute(wanted, {"q": query, "n": most + 1}).scalar_one()
    if bulk.is_postgres(connection):
        connection.exec_driver_sql("SET LOCAL gin_fuzzy_search_limit = 0")
    return bool(found > most)


def matching(connection: Connection, words: Sequence[str], *, most: int) -> list[int]:
    """Failures whose evidence contains all words, at most `most`, unordered."""
    if bulk.is_postgres(connection):
        wanted = text("SELECT failure_id FROM evidence_words WHERE words @@ CAST(:q AS tsquery) LIMIT :most")
        query = " & ".join(f"'{word}'{':*' if len(word) >= PREFIX_FROM else ''}" for word in words)
    else:
        wanted = text("SELECT rowid FROM evidence_words WHERE evidence_words MATCH :q LIMIT :most")
        query = " ".join(f'"{word}"{" *" if len(word) >= PREFIX_FROM else ""}' for word in words)
    return list(connection.execute(wanted, {"q": query, "most": most}).scalars())


def has_words(connection: Connection, here: str, words: Sequence[str]) -> ColumnElement[bool]:
    """A condition: the evidence of the failure whose id is in column `here` contains all words.

    A scalar query by intent: no planner turns it into a join that reads every failure with a common word.
    """
    if bulk.is_postgres(connection):
        query = " & ".join(f"'{word}'{':*' if len(word) >= PREFIX_FROM else ''}" for word in words)
        one = f"(SELECT entry.words FROM evidence_words AS entry WHERE entry.failure_id = {here})"  # noqa: S608 - a column of ours
        found: ColumnElement[bool] = literal_column(one).op("@@", is_comparison=True)(cast(literal(query), TSQUERY))
        return found
    own = f"(SELECT ' ' || entry.words || ' ' FROM evidence_words AS entry WHERE entry.rowid = {here})"  # noqa: S608 - as above
    searched: ColumnElement[Any] = literal_column(own)
    conditions = [
        searched.contains(f" {word}" if len(word) >= PREFIX_FROM else f" {word} ", autoescape=True) for word in words
    ]
    return and_(literal(value=True), *conditions)


MOST_OF_A_JOB = 2_000  # failures of one job
NEWEST = 10_000  # failures whose names are compared: no index serves names
_CLUSTERS = 200


def failures_of_job(connection: Connection, text: str, *, cluster: str | None) -> list[int]:
    """The ids of the failures of a job, unordered, at most 2,000; by name only where no job has this id."""
    wanted = clean(text)
    names = _clusters(connection) if cluster is None else [clean(cluster)]
    by_id = (
        select(failures.c.id)
        .join(jobs, jobs.c.id == failures.c.id)
        .where(jobs.c.cluster.in_(names), jobs.c.job_id == wanted)
        .limit(MOST_OF_A_JOB)
    )
    found = list(connection.execute(by_id).scalars())
    if found:
        return found
    newest = (
        select(failures.c.id)
        .order_by(failures.c.ended_at.desc(), failures.c.id.desc())
        .limit(NEWEST)
        .subquery("newest")
    )
    by_name = select(newest.c.id).join(jobs, jobs.c.id == newest.c.id).where(jobs.c.name == wanted).limit(MOST_OF_A_JOB)
    return list(connection.execute(by_name).scalars())


def _clusters(connection: Connection) -> list[str]:
    """The names of the clusters: one step in the index of cluster and job id for each."""
    found: list[str] = []
    name = connection.execute(select(func.min(jobs.c.cluster))).scalar()
    while name is not None and len(found) < _CLUSTERS:
        found.append(name)
        name = connection.execute(select(func.min(jobs.c.cluster)).where(jobs.c.cluster > name)).scalar()
    return found
