"""A synthetic but consistent owner, site and machine for each run, so that the corpus reveals nothing of the lab.

Everything is drawn from a generator seeded by the run's id: the same run always gets the same identity.
"""

import hashlib
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_USERS = ("mlee", "akumar", "jfischer", "ychen", "sofia.r", "tnguyen", "pdubois", "hsato", "omar", "klara", "dmitri",
          "zwang",
          "rgarcia", "ianc", "ebru", "lwest")  # fmt: skip
_TEAMS = ("vision", "speech", "nlp", "ranking", "bio", "robotics", "foundation", "ads")
_PROJECTS = ("segformer-ft", "tinylm", "asr-conformer", "protein-lm", "rec-ranker", "vit-pretrain", "diffusion-small",
             "contrastive", "llm-sft", "detector", "nmt-base", "gnn-molecules", "rl-policy", "tts-flow")  # fmt: skip
_SCRIPTS = (
    "train.py",
    "main.py",
    "run.py",
    "finetune.py",
    "pretrain.py",
    "launch_train.py",
    "trainer.py",
    "train_ddp.py",
)
_HOMES = ("/home/{user}/{project}", "/workspace/{project}", "/mnt/nfs/{user}/{project}",
          "/data/{team}/{user}/{project}",
          "/opt/ml/code", "/app", "/scratch/{user}/{project}", "/lustre/projects/{team}/{project}")  # fmt: skip
_PYTHONS = ("/opt/conda/envs/pt", "/opt/venv", "/home/{user}/miniconda3/envs/{team}", "/usr/local", "/opt/env")
_HOSTS = ("gpu{:03d}", "node{:02d}", "ip-10-12-{}-{}", "dgx-{:02d}", "worker-{}",
          "hgx{:02d}.cluster.local", "a100-{:02d}",
          "trainer-{}")  # fmt: skip
_QUEUES = ("gpu", "a100", "batch", "long", "interactive", "h100", "default")
_GPUS = (None, "A100-SXM4-80GB", "H100-SXM5-80GB", "V100-SXM2-32GB", "L40S", None)
_CLUSTERS = ("orion", "lyra", "draco", "vega", "gpu-west", "ml-prod", "k8s-train")


@dataclass(frozen=True, slots=True)
class Identity:
    """The user, job, nodes and paths of a run as the corpus shows them."""

    user: str
    team: str
    project: str
    script: str
    folder: str
    python: str
    hosts: tuple[str, ...]
    cluster: str
    queue: str
    gpu_type: str | None
    scheduler: str | None
    job_id: str
    start: int  # seconds since the epoch
    merged: bool  # stdout and stderr in one stream
    logs: str  # ranks | console | tee
    address: str


def identity(run: str, nodes: int) -> Identity:
    """Return the identity of a run with that many nodes."""
    draw = random.Random(hashlib.sha256(run.encode()).digest())
    user, team, project = draw.choice(_USERS), draw.choice(_TEAMS), draw.choice(_PROJECTS)
    names = {"user": user, "team": team, "project": project}
    pattern, first, second = draw.choice(_HOSTS), draw.randint(1, 90), draw.randint(2, 250)
    hosts = tuple(pattern.format(first + n, second) for n in range(max(nodes, 1)))
    scheduler = draw.choices(["slurm", "kubernetes", None], [5, 3, 3])[0]
    number = draw.randint(10_000, 990_000)
    return Identity(
        user=user,
        team=team,
        project=project,
        script=draw.choice(_SCRIPTS),
        folder=draw.choice(_HOMES).format(**names),
        python=draw.choice(_PYTHONS).format(**names),
        hosts=hosts,
        cluster=draw.choice(_CLUSTERS),
        queue=draw.choice(_QUEUES),
        gpu_type=draw.choice(_GPUS),
        scheduler=scheduler,
        job_id=f"{team}/job/{project}-{number % 1000}" if scheduler == "kubernetes" else str(number),
        start=1_793_500_000 + draw.randint(0, 2_000_000),
        merged=draw.random() < 0.7,
        logs=draw.choices(["ranks", "console", "tee"], [5, 4, 2])[0],
        address=f"10.{draw.randint(8, 60)}.{draw.randint(0, 250)}.{second}",
    )


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Replaces everything that identifies the lab's machine by the run's identity; longest first."""

    table: tuple[tuple[re.Pattern[str], str], ...]

    def __call__(self, text: str) -> str:
        """Return the text as the corpus shows it."""
        for pattern, instead in self.table:
            text = pattern.sub(lambda _m, word=instead: word, text)  # type: ignore[misc]
        return text


def scrubber(
    who: Identity, work: Path, environment: Path | None, machine: Mapping[str, str], addresses: tuple[str, ...]
) -> Scrubber:
    """Return a scrubber for one run.

    Args:
        who: the identity to show.
        work: the run's folder on this machine.
        environment: the venv of the run, None if none.
        machine: further names of this machine and their replacements (paths, host and user names).
        addresses: the machine's own network addresses.
    """
    words: dict[str, str] = {str(work): who.folder, str(work.resolve()): who.folder}
    if environment is not None:
        words[str(environment)] = who.python
        words[str(environment.resolve())] = who.python
    words.update(machine)
    table = [
        (re.compile(re.escape(word)), instead) for word, instead in sorted(words.items(), key=lambda w: -len(w[0]))
    ]
    table += [
        (re.compile(r"(?<![\w.])" + re.escape(address) + r"(?![\w.])"), who.address) for address in addresses if address
    ]
    table.append((re.compile(r"https://\w+\.org(?=/project/)"), "https://packages.example.org"))  # install hints
    # Temporary names and the home folder of the lab's user.
    table.append((re.compile(r"/root\b"), f"/home/{who.user}"))
    return Scrubber(tuple(table))
