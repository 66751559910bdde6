"""What ranks say on a good day: how loggers mark their lines, a step's report, starting up, and harmless trouble."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

Stamp = Callable[[datetime], str]
TRAIN = "train.py"

# How a program's own logger begins a line; `{r}` the rank, `{t}` a time in one of the usual forms.
LOGGERS: tuple[tuple[str, str], ...] = (
    ("", ""),
    ("%Y-%m-%d %H:%M:%S,%f", "{t} INFO trainer: "),
    ("%Y-%m-%d %H:%M:%S,%f", "[{t}] [INFO] [train.py:412:log_step] "),
    ("%Y-%m-%d %H:%M:%S", "[{t}][rank {r}] "),
    ("%H:%M:%S", "[{t}] "),
    ("%Y-%m-%dT%H:%M:%S.%fZ", "{t} rank={r} "),
    ("%m%d %H:%M:%S.%f", "I{t} {pid} train.py:88] "),
    ("%Y-%m-%d %H:%M:%S", "{t} | INFO     | __main__:train:118 - "),
    ("", "[Rank {r}] "),
    ("", "({r}) "),
    ("%Y-%m-%d %H:%M:%S,%f", "{t} - r{r} - INFO - "),
    ("%m/%d %H:%M:%S", "{t} - mmengine - INFO - "),
    ("%Y-%m-%d %H:%M:%S", "[NeMo I {t} train:77] "),
)
RANKED = tuple(one for one in LOGGERS if "{r}" in one[1])

# One step's report.
REPORTS = (
    "step {s} loss {loss:.4f}",
    "step {s}/{total} | loss {loss:.4f} | {rate:.2f} it/s | mem {mem:.1f}G",
    "iter {s}: loss={loss:.4f}, lr={lr:.2e}, {ms:.0f} ms",
    " iteration {s:8d}/{total:8d} | consumed samples: {samples:12d} | elapsed time per iteration (ms): {ms:.1f} | "
    "learning rate: {lr:.3E} | global batch size:   512 | lm loss: {loss:.6E} | loss scale: 1.0 | "
    "number of skipped iterations:   0 | number of nan iterations:   0 |",
    "{{'loss': {loss:.4f}, 'grad_norm': {mem:.3f}, 'learning_rate': {lr:.6e}, 'epoch': {epoch:.2f}}}",
    "Epoch: [{e}][{s}/{total}]  Time  {rate:.3f} ( 0.311)  Data  0.002 ( 0.004)  Loss {loss:.4e} ({loss:.4e})",
    "Train Epoch: {e} [{samples}/{samples2} ({pct}%)]\tLoss: {loss:.6f}",
    "global_step={s} train_loss={loss:.4f} tokens_per_sec={tokens}",
    "{pct:3d}%|{bar:<10}| {s}/{total} [{e:02d}:41<41:05,  {rate:.2f}it/s, loss={loss:.3f}]",
)

NCCL_START = (
    "{host}:{pid}:{pid} [{g}] NCCL INFO Bootstrap : Using eth0:{ip}<0>",
    "{host}:{pid}:{pid} [{g}] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so), using internal implementation",
    "{host}:{pid}:{pid2} [{g}] NCCL INFO Using network {net}",
    "{host}:{pid}:{pid2} [{g}] NCCL INFO comm 0x{hexb} rank {r} nranks {n} cudaDev {g} busId {hexa} commId 0x{hexb} "
    "- Init START",
    "{host}:{pid}:{pid2} [{g}] NCCL INFO Channel 00/0 : {r}[{g}] -> {r1}[{g}] via P2P/CUMEM",
    "{host}:{pid}:{pid2} [{g}] NCCL INFO Connected all rings",
    "{host}:{pid}:{pid2} [{g}] NCCL INFO comm 0x{hexb} rank {r} nranks {n} cudaDev {g} busId {hexa} - Init COMPLETE",
)
START = {
    "pytorch": (
        "{pkg}/torch/optim/lr_scheduler.py:143: UserWarning: Detected call of `lr_scheduler.step()` before "
        "`optimizer.step()` at {wd}.",
        "[W{glog} Utils.hpp:{ln}] Warning: Environment variable NCCL_ASYNC_ERROR_HANDLING is deprecated; use "
        "TORCH_NCCL_ASYNC_ERROR_HANDLING instead (function operator())",
        "{pkg}/torch/utils/data/dataloader.py:{ln}: UserWarning: This DataLoader will create 12 worker processes in total.",
        "[W{glog} reducer.cpp:{ln}] Warning: find_unused_parameters=True was specified in DDP constructor, but did not "
        "find any unused parameters in the forward pass. (function operator())",
        "Error in cpuinfo: prctl(PR_SVE_GET_VL) failed",
    ),
    "mpi": ("OMP: Info #276: omp_set_nested routine deprecated, please use omp_set_max_active_levels instead.",),
    "horovod": (
        "WARNING:tensorflow:From {pkg}/tensorflow_core/python/ops/math_grad.py:{ln}: where is deprecated and will be "
        "removed in a future version.",
    ),
    "jax": (
        "W{glog} {pid} xla_bridge.py:{ln}] An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is "
        "not installed. Falling back to cpu.",
        "I{glog} {pid} distributed.py:{ln}] Connecting to JAX distributed service on {ip}:8476",
    ),
    "tensorflow": (
        "{tsf}: I tensorflow/core/platform/cpu_feature_guard.cc:{ln}] This TensorFlow binary is optimized to use "
        "available CPU instructions in performance-critical operations.",
        "{tsf}: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:{ln}] Unable to register cuDNN factory: "
        "Attempting to register factory for plugin cuDNN when one has already been registered",
        "{tsf}: I tensorflow/core/distributed_runtime/coordination/coordination_service_agent.cc:{ln}] Coordination "
        "agent has successfully connected.",
    ),
}
START["deepspeed"] = (
    "[{tsm}] [INFO] [comm.py:{ln}:init_distributed] cdb=None",
    " [WARNING]  async_io requires the dev libaio .so object and headers but these were not found.",
    "[{tsm}] [WARNING] [real_accelerator.py:{ln}:get_accelerator] unable to import a device extension, skipping",
)
START["ray"] = START["pytorch"]

# Harmless trouble in the midst: looks like failure, and the run goes on.
HARMLESS = (
    "WARNING:urllib3.connectionpool:Retrying (Retry(total=4, connect=None, read=None, redirect=None, status=None)) after "
    "connection broken by 'ReadTimeoutError(\"read timed out\")': /api/v1/log/{hexb}",
    "wandb: Network error (ConnectionError), entering retry loop.",
    "upload of metrics failed (attempt 1/5): 503 Server Error: Service Unavailable for url: https://{svc}/log, retrying",
    "[W{glog} socket.cpp:{ln}] [c10d] The IPv6 network addresses of ({host}, {port}) cannot be retrieved (gai error: -2 - "
    "Name or service not known).",
    "error reading sample {ln} of shard {pid}: image file is truncated, skipped",
    "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
    "{pkg}/PIL/TiffImagePlugin.py:{ln}: UserWarning: Corrupt EXIF data.  Expecting to read 4 bytes but only got 0.",
    "exception in prefetch thread ignored: ConnectionResetError(104, 'Connection reset by peer'); reconnected",
    "WARNING: slow step, data loading took {pid} ms",
    "Saving checkpoint to {ckpt}",
    "evaluation: accuracy 0.{ln}",
    "{host}:{pid}:{pid2} [{g}] NCCL WARN Could not find a path for pattern 4, falling back to simple order",
)


@dataclass(slots=True)
class Voice:
    """How one job's ranks speak: which report, which logger mark, and whether all of them do."""

    report: str
    stamp: str
    mark: str
    everyone: bool

    @classmethod
    def draw(cls, rng: random.Random) -> "Voice":
        """A way to speak; where everyone does, the logger mostly tells who."""
        everyone = rng.random() < 0.5  # noqa: PLR2004 - half of them
        stamp, mark = rng.choice(RANKED if everyone and rng.random() < 0.6 else LOGGERS)  # noqa: PLR2004 - most of them
        return cls(rng.choice(REPORTS), stamp, mark, everyone)

    def line(self, at: datetime, rank: int, pid: int, words: str) -> str:
        """Words as the logger writes them."""
        told = at.strftime(self.stamp) if self.stamp else ""
        if ",%f" in self.stamp:
            told = told[:-3]
        return self.mark.format(t=told, r=rank, pid=pid) + words

    def step(self, rng: random.Random, number: int, total: int) -> str:
        """One step's report."""
        done = number / max(1, total)
        return self.report.format(
            s=number, total=total, loss=6.5 - 4 * done + rng.uniform(-0.2, 0.2), rate=rng.uniform(0.4, 9), e=int(done * 9),
            mem=rng.uniform(20, 78), lr=3e-4 * (1 - done) + 1e-6, ms=rng.uniform(90, 9000), samples=number * 512,
            samples2=total * 512, epoch=done * 3, pct=int(100 * done), tokens=rng.randint(2000, 90000),
            bar="█" * int(10 * done),
        )  # fmt: skip
