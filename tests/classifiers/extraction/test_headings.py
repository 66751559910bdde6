"""Headings of errors, aborts of processes that had lost the others, and general reports beside a stated reason."""

import pytest

from tests.classifiers.extraction.demotion.test_stated_reasons import items_of, leading

HEADING = "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:"


def test_a_heading_is_no_beginning_where_the_error_follows() -> None:
    lines = (HEADING, "", "Incompatible shapes: [8,3] vs. [8,4]")
    first = next(item for item in items_of(*lines) if item.role == "initiating")
    assert first.text == lines[-1]
    assert next(item for item in items_of(HEADING, "") if item.role == "initiating").text == HEADING


def test_an_abort_after_the_loss_of_others_is_no_beginning() -> None:
    lost = "F0312 09:00:01.000000 8 client.h:80] Terminating process because another task died"
    aborted = "Fatal Python error: Aborted"
    assert {item.text: item.role for item in items_of(lost, aborted)}[aborted] == "teardown"
    assert {item.text: item.role for item in items_of("step 7 loss 2.0", aborted)}[aborted] == "initiating"


@pytest.mark.parametrize(
    ("reason", "general", "entry"),
    [
        ("Unable to connect to the server: net/http: TLS handshake timeout",
         "ORTE was unable to reliably start one or more daemons.", "kubernetes.api-server"),
        ("slurmstepd: error: pyxis: URL https://images.example/v2/x returned error code: 503 Service Unavailable",
         "slurmstepd: error: Failed to invoke spank plugin stack", "service.http-5xx"),
    ],
)  # fmt: skip
def test_a_launchers_general_report_gives_way_to_the_stated_reason(reason: str, general: str, entry: str) -> None:
    assert leading(general, reason) == entry
    assert leading(general) != entry
