"""Lines that healthy runs print before and after the work, and beside a failing rank.

Written for tests from what the programs named here print; none is in the packaged data.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

_PACKAGES: Final = ("numpy", "torch", "transformers", "error-handler", "retry2", "timeout-decorator", "pynvml", "wandb")
_SETTINGS: Final = """\
model:
  name: gpt-neox-20b
  dropout: 0.1
  word_error_rate: true
trainer:
  max_steps: 100000
  nan_check: true
  retry_on_failure: 3
  timeout_s: 1800
  on_exception: raise
  kill_on_hang: false
data:
  error_rate: 0.001
  skip_corrupt: true
  missing_policy: warn
  io_timeout: 30
  num_retries: 5
optimizer: {name: adamw, lr: 0.0003, overflow_backoff: 0.5, abort_on_nan: true}
checkpoint: {every: 1000, keep: 5, fail_on_missing: false, async_timeout: 600}
elastic: {max_restarts: 0, rdzv_timeout: 900, exit_barrier_timeout: 300}
logging: {level: INFO, error_log: null, log_errors: true}
"""
_SHUTDOWN: Final = """\
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
srun: Terminating StepId={job}.0
slurmstepd: error: *** STEP {job}.0 ON {node} CANCELLED AT {at:%FT%T} ***
wandb: \U0001f680 View run sage-lake-17 at: https://wandb.example/team/project/runs/3fj2k1
wandb: Synced 5 W&B file(s), 0 media file(s), 0 artifact file(s) and 0 other file(s)
wandb: Find logs at: ./wandb/run-{at:%Y%m%d_%H%M%S}-3fj2k1/logs
Stopping container trainer-0
Stopping container trainer-1
Container trainer-0  Stopping
Container trainer-0  Stopped
Container trainer-1  Stopping
Container trainer-1  Stopped
Network job_default  Removing
Network job_default  Removed
[atexit] flushing 12 pending metrics
[atexit] closing tensorboard writer
[atexit] removing temporary folder /tmp/job.{job}
cleanup: unmounting /mnt/scratch
cleanup: released 8 GPUs
cleanup: done
epilog: stopping nvidia-persistenced watch
epilog: stopping dcgm collection for job {job}
epilog: collecting accounting
epilog: done
[launcher] all workers finished
[launcher] closing rendezvous
[launcher] uploading logs to archive
[launcher] uploaded 3 files
[launcher] elapsed 02:13:44
[launcher] bye
"""


def banner(at: datetime) -> Sequence[str]:
    """What a job script prints first, at the start of the job."""
    return (
        "=" * 72,
        " Job 8812734 (llm-pretrain) on partition gpu, account ai2026",
        " Nodes: 1   GPUs: 8 x H100   Limit: 1-00:00:00",
        f" Started: {at:%a %b %d %H:%M:%S} UTC {at:%Y}",
        "=" * 72,
        "Python 3.11.9, torch 2.6.0+cu124, driver 570.124.06",
    )


def packages(count: int) -> Sequence[str]:
    """An installation by pip."""
    forms = (
        "Collecting {name}=={major}.{minor}.1",
        "  Downloading {name}-{major}.{minor}.1-py3-none-any.whl (1{minor}.4 MB)",
        "     \u2501\u2501\u2501\u2501\u2501\u2501\u2501\u2501 1{minor}.4/1{minor}.4 MB 48.1 MB/s eta 0:00:00",
        "Requirement already satisfied: {name}>={major}.0 in /opt/conda/lib/python3.11/site-packages ({major}.{minor})",
    )
    made = [
        forms[number % 4].format(name=_PACKAGES[number // 2 % 8], major=number % 5, minor=number % 9)
        for number in range(count)
    ]
    return [*made, "Installing collected packages: " + ", ".join(_PACKAGES), "Successfully installed numpy-1.26.4"]


def modules(count: int) -> Sequence[str]:
    """What environment modules print."""
    forms = ("Loading cuda/12.{n}", "  Loading requirement: gcc/1{n}.2.0 openmpi/4.1.{n}", "+ module load nccl/2.{n}")
    return [forms[number % 3].format(n=number % 9) for number in range(count)]


def nccl(count: int) -> Sequence[str]:
    """Information of NCCL at its start."""
    forms = (
        "nid001042:{pid}:{pid} [{gpu}] NCCL INFO Bootstrap : Using hsn0:10.150.1.42<0>",
        "nid001042:{pid}:{pid} [{gpu}] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.",
        "nid001042:{pid}:{pid} [{gpu}] NCCL INFO NET/IB : No device found.",
        "nid001042:{pid}:{pid} [{gpu}] NCCL INFO Channel {n:02d}/24 : 0 1 2 3 4 5 6 7",
        "nid001042:{pid}:{pid} [{gpu}] NCCL INFO NCCL_TIMEOUT set by environment to 1800",
        "nid001042:{pid}:{pid} [{gpu}] NCCL INFO Connected all rings",
    )
    return [forms[n % 6].format(pid=4711 + n % 8, gpu=n % 8, n=n % 24) for n in range(count)]


def settings() -> Sequence[str]:
    """The settings of a training run."""
    return _SETTINGS.splitlines()


def bars(count: int) -> Sequence[str]:
    """Progress bars of tqdm, a line each."""
    return [
        f"Loading checkpoint shards: {100 * n // count:3d}%|{'#' * (n * 10 // count):10}| {n}/{count} "
        f"[00:{n % 60:02d}<00:{(count - n) % 60:02d},  2.31it/s]"
        for n in range(1, count + 1)
    ]


def training(count: int) -> Sequence[str]:
    """Steps of a healthy run."""
    return [
        f"step {10 * n:6d} | loss {2.5 + 3 / (n + 1):.4f} | lr 3.00e-04 | grad norm {0.4 + n % 7 / 10:.3f} | "
        f"nan iterations: 0 | skipped iterations: 0 | error rate {0.2 + 1 / (n + 9):.3f}"
        for n in range(1, count + 1)
    ]


def shutdown(at: datetime, job: str, node: str) -> Sequence[str]:
    """What launchers, schedulers and libraries print after the program's end."""
    return _SHUTDOWN.format(at=at, job=job, node=node).splitlines()
