"""The null pipeline: consume, decode, store the same bytes with PostgreSQL's fastest bulk insert, commit. No more.

It is the highest speed that any service can reach with these components; the full pipeline is measured
against it.
"""

import hashlib
import time
from multiprocessing.synchronize import Barrier

import orjson
import psycopg
from kafka import KafkaConsumer

TABLE = "CREATE TABLE IF NOT EXISTS null_events (event_id text, cluster text, job_id text, status text, body bytea)"
COPY = "COPY null_events (event_id, cluster, job_id, status, body) FROM STDIN"
BATCH = 500
FETCH_BYTES = 64 * 1024 * 1024


def run(bootstrap: str, topic: str, group: str, database_url: str, ready: Barrier, idle_s: float) -> None:
    """Consume until no record has arrived for `idle_s` seconds."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=BATCH,
        fetch_max_bytes=FETCH_BYTES,
        max_partition_fetch_bytes=FETCH_BYTES // 4,
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        ready.wait()
        last = time.monotonic()
        while time.monotonic() - last < idle_s:
            batch = [record for records in consumer.poll(timeout_ms=200).values() for record in records]
            if not batch:
                continue
            last = time.monotonic()
            with connection.transaction(), connection.cursor() as cursor, cursor.copy(COPY) as copy:
                copy.set_types(["text", "text", "text", "text", "bytea"])
                for record in batch:
                    event = orjson.loads(record.value)
                    key = hashlib.sha256(f"{event['cluster']}/{event['job_id']}".encode()).hexdigest()
                    copy.write_row((key, event["cluster"], event["job_id"], event["status"], record.value))
            consumer.commit()
    consumer.close(autocommit=False)
