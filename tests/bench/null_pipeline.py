"""The null pipeline: consume, decode, store the same bytes with PostgreSQL's fastest bulk insert, commit. No more.

It is the highest speed that any service can reach with these components; the full pipeline is measured
against it.
"""

import hashlib
import time
from typing import TYPE_CHECKING

import orjson
import psycopg
from kafka import KafkaConsumer

if TYPE_CHECKING:
    from tests.bench.pipeline import Signals

TABLE = "CREATE TABLE IF NOT EXISTS null_events (event_id text, cluster text, job_id text, status text, body bytea)"
COPY = "COPY null_events (event_id, cluster, job_id, status, body) FROM STDIN"
BATCH = 500
FETCH_BYTES = 64 * 1024 * 1024


def run(bootstrap: str, topic: str, group: str, database_url: str, signals: "Signals") -> None:
    """Consume until told to stop; send the processor time."""
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
        signals.ready.wait()
        began = time.process_time()
        while not signals.done.is_set():
            batch = [record for records in consumer.poll(timeout_ms=200).values() for record in records]
            if not batch:
                continue
            with connection.transaction(), connection.cursor() as cursor, cursor.copy(COPY) as copy:
                copy.set_types(["text", "text", "text", "text", "bytea"])
                for record in batch:
                    event = orjson.loads(record.value)
                    key = hashlib.sha256(f"{event['cluster']}/{event['job_id']}".encode()).hexdigest()
                    copy.write_row((key, event["cluster"], event["job_id"], event["status"], record.value))
            consumer.commit()
        signals.times.put({"all": time.process_time() - began})
    consumer.close(autocommit=False)
