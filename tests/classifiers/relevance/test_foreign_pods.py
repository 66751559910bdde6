"""What events say of pods of other jobs."""

from datetime import UTC, datetime

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner
from classifiers.relevance.own_names import is_of_foreign_pod

EXTRACTOR = Extractor(Scanner(signatures.packaged()))
AT = datetime(2026, 9, 1, 8, tzinfo=UTC)
OTHER = "Evicted pod/etl-shuffle-4: The node was low on resource: ephemeral-storage. Container x was using 900124Mi"
PRESSURE = "Node n7 status is now: NodeHasDiskPressure"


def test_a_pod_is_foreign_where_nothing_of_the_job_names_it() -> None:
    assert is_of_foreign_pod(OTHER, ["clip-worker-0: step 7", "clip"])
    assert not is_of_foreign_pod(OTHER, ["etl-shuffle-0: step 7"])
    assert not is_of_foreign_pod(PRESSURE, ["clip-worker-0: step 7"])


def test_the_appetite_of_a_foreign_pod_does_not_refute_the_pressure_on_the_node() -> None:
    log = LogStream("step 7 loss 2.0\nReceived 15 death signal, shutting down workers", node="n7", stream="stderr")
    job = JobFacts(status="failed", scheduler="kubernetes", reason="Evicted", nodes=("n7",), ended_at=AT)
    events = (NodeEvent(OTHER, AT, "n7"), NodeEvent(PRESSURE, AT, "n7"))
    items = EXTRACTOR.extract(RawCase(job=job, streams=(log,), node_events=events)).items
    hits = {hit.id: hit.role for item in items if item.text == PRESSURE for hit in item.hits}
    assert hits.get("kubernetes.evicted-memory") == "initiating"
