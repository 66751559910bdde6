"""Shapes of lines, whatever the catalogue knows."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.extraction.line_shapes import Shape, is_overcome, reports_lost_peer, shape_of


@pytest.mark.parametrize(
    ("line", "shape"),
    [
        ("exitcode  : -9 (pid: 4711)", "report"),
        ("<NO_OTHER_FAILURES>", "report"),
        ("=   EXIT CODE: 139", "report"),
        ("@     0x7f71e8e9a82e  std::_Function_handler<>::_M_invoke()", "boilerplate"),
        ("[n1:42] [[5886,0],0] ORTE_ERROR_LOG: Out of resource in file show_help.c at line 501", "boilerplate"),
        ("YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)", "boilerplate"),
        ("Fatal Python error: Segmentation fault", "crash"),
        ("[gpu048:02131] *** Process received signal ***", "crash"),
        ("[n2:327:0:327] Caught signal 11 (Segmentation fault: address not mapped)", "crash"),
        ("Abort(738871810) on node 1 (rank 1 in comm 0): Fatal error in internal_Send", "crash"),
        ("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD", "end"),
        ("RuntimeError: DataLoader worker (pid 71239) is killed by signal: Killed.", "end"),
        ("KeyError: 'label'", None),
        ("step 10 loss 2.0", None),
    ],
)
def test_the_message_of_a_line_gives_its_shape(line: str, shape: str | None) -> None:
    assert shape_of(line) == shape


def test_only_faults_that_a_program_calls_overcome_are_overcome() -> None:
    assert is_overcome("error reading sample 7, skipped")
    assert is_overcome("prefetch: ConnectionResetError ignored; reconnected")
    assert not is_overcome("error reading sample 7")
    assert not is_overcome("invalid skip_rows value")


def test_a_lost_peer_is_recognised_and_a_lost_server_is_no_peer() -> None:
    assert reports_lost_peer("RuntimeError: [gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.1]:4711")
    assert reports_lost_peer("Horovod background loop uncaught exception: Connection reset by peer")
    assert reports_lost_peer("Additional GRPC error information from remote target /job:worker/replica:0/task:1:")
    assert not reports_lost_peer("download failed during epoch: Connection reset by peer")
    assert not reports_lost_peer("gloo: invalid argument")


@given(st.text(max_size=700))
def test_any_line_has_a_shape_or_none(line: str) -> None:
    assert shape_of(line) in {None, *get_args(Shape)}
    assert {is_overcome(line), reports_lost_peer(line)} <= {True, False}
