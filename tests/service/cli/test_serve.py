"""`faultline serve`: what the model leaves behind does not stop requests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.crashes import model_dir
from tests.service.databases import copy_migrated
from tests.service.run_command import run_command

# Instead of serving, it tells how many objects a collection of garbage leaves out, how many it searches, and how often
# garbage was collected since the command began.
PROGRAM = """
import gc, sys, uvicorn
from service.__main__ import main
collections = lambda: sum(generation["collections"] for generation in gc.get_stats())
before = collections()
uvicorn.Server.run = lambda *_, **__: print(gc.get_freeze_count(), len(gc.get_objects()), collections() - before)
sys.exit(main(["serve", "--port", "0"]))
"""


def test_with_a_worker_it_does_not_begin_to_answer_if_no_broker_is_named(tmp_path: Path) -> None:
    environ = {
        "FAULTLINE_DATABASE_URL": copy_migrated(tmp_path / "store.sqlite3"),
        "FAULTLINE_MODEL_DIR": str(model_dir()),
    }
    done = run_command(environ, "serve", "--with-worker", "--port", "0")
    assert done.returncode == 2
    assert "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS" in done.stderr
    assert "Faultline is at" not in done.stderr


@pytest.mark.slow
def test_garbage_collection_searches_the_model_neither_while_it_loads_nor_while_requests_wait(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    environ |= {
        "FAULTLINE_DATABASE_URL": copy_migrated(tmp_path / "store.sqlite3"),
        "FAULTLINE_MODEL_DIR": str(model_dir()),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    left_out, searched, collections = map(int, done.stdout.split())
    assert left_out > 10 * searched
    assert collections < 30  # where nothing pauses it: 160
