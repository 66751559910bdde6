"""Distinct values of an indexed column, on each database."""

from service.db.session import Store
from service.jobs.tables import jobs
from service.sql.portable import distinct_values
from tests.service.databases import connection_of
from tests.service.sample_rows import job, put


def test_each_value_is_there_once_in_order_and_at_most_as_many_as_wanted(store: Store) -> None:
    put(store, [job(f"{n}", cluster=name, team="b" if n % 2 else "a") for n, name in enumerate("cabcabca")])
    with store.reading() as reading:
        connection = connection_of(reading.jobs)
        assert distinct_values(connection, jobs.c.cluster, most=100) == ("a", "b", "c")
        assert distinct_values(connection, jobs.c.cluster, most=2) == ("a", "b")
        assert distinct_values(connection, jobs.c.cluster, jobs.c.job_id == "0", most=9) == ("c",)
        assert distinct_values(connection, jobs.c.cluster, jobs.c.job_id == "none", most=9) == ()
        assert [one.job_id for one in reading.jobs.attempts_anywhere("4")] == ["4"]
        assert reading.jobs.attempts_anywhere("400") == ()
        assert reading.statistics.names() == {"cluster": (), "queue": (), "team": ()}, "days are counted later"
