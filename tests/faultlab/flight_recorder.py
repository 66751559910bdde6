"""Induces four failures of collectives with gloo and keeps the Flight Recorder dumps of all ranks.

Run with an interpreter that has PyTorch 2.8 or newer: `python -m tests.faultlab.flight_recorder FOLDER`.
Each failure gets one folder with `rank_<n>.json` and `rank_<n>.pickle`; a rank that died leaves none.
"""

import argparse
import importlib
import multiprocessing
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

RANKS = 4
FAULTY = 2
FAULTS = ("missing_rank", "mismatched_sizes", "mismatched_operations", "dead_rank")
_STEPS = 3
_TIMEOUT_S = 8
_DUMP_AFTER_S = 4
_JOIN_S = 60
_WIDE = 8


def _train(fault: str, rank: int) -> None:
    """Run a few steps with all ranks, then the failure; return at once where the rank takes no part."""
    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    for _ in range(_STEPS):
        dist.all_reduce(torch.ones(4))
        dist.broadcast(torch.ones(2), src=0)
    faulty = rank == FAULTY
    if faulty and fault == "dead_rank":
        os._exit(1)
    if faulty and fault == "missing_rank":
        return
    if faulty and fault == "mismatched_operations":
        dist.broadcast(torch.ones(4), src=0, async_op=True)
        return
    dist.all_reduce(torch.ones(_WIDE if faulty and fault == "mismatched_sizes" else 4), async_op=True)


def _process(fault: str, rank: int, store: str, folder: Path) -> None:
    os.environ["TORCH_FR_BUFFER_SIZE"] = "64"
    dist: Any = importlib.import_module("torch.distributed")
    recorder: Any = importlib.import_module("torch._C._distributed_c10d")
    options = {"rank": rank, "world_size": RANKS, "timeout": timedelta(seconds=_TIMEOUT_S)}
    dist.init_process_group("gloo", init_method=f"file://{store}", **options)
    _train(fault, rank)
    time.sleep(_DUMP_AFTER_S)
    (folder / f"rank_{rank}.json").write_bytes(recorder._dump_fr_trace_json())
    (folder / f"rank_{rank}.pickle").write_bytes(recorder._dump_fr_trace(includeStackTraces=False))
    os._exit(0)  # no orderly end: collectives still wait


def induce(fault: str, folder: Path) -> None:
    """Run one failure of `FAULTS` and write the dumps of the ranks to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / "store"
    store.unlink(missing_ok=True)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_process, args=(fault, rank, str(store), folder)) for rank in range(RANKS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(_JOIN_S)
        if worker.is_alive():
            worker.kill()
    store.unlink(missing_ok=True)


def main() -> None:
    """Induce all failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for fault in FAULTS:
        induce(fault, folder.resolve() / fault)


if __name__ == "__main__":
    main()
