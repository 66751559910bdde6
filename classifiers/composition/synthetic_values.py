"""Made-up hosts, paths, ids and times of one job.

A template names a value by `$name` (drawn once per case: the same name is the same value everywhere), a choice by
`$(one|two)` and a number by `$(3-9)`. Times (`$ts`, `$iso`, `$sys`, `$kts`, `$glog`, `$ms`) advance with every use.
"""

import random
import re
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

PLACE = re.compile(r"\$(?:\{([a-z]+\d*)\}|([a-z]+\d*)|\(([^()]*)\))")
NUMBERS = re.compile(r"^(\d+)-(\d+)$")


@cache
def _words() -> dict[str, list[str]]:
    """Return the lists of vocabulary.toml by name."""
    return tomllib.loads((Path(__file__).parent / "vocabulary.toml").read_text(encoding="utf-8"))


class SyntheticValues:
    """The values of one case."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.known: dict[str, str] = {}
        start = datetime(2024, 2, 1, tzinfo=UTC)
        self.now = start + timedelta(seconds=rng.randrange(86_400 * 900), microseconds=rng.randrange(1_000_000))
        self.boot = self.now - timedelta(seconds=rng.randrange(40_000, 9_000_000))
        self._host = self._host_maker()
        self._makers = self._table()

    def _host_maker(self) -> Callable[[], str]:
        rng = self.rng
        styles: list[Callable[[], str]] = [
            lambda: f"gpu{rng.randint(1, 240):03d}",
            lambda: f"node{rng.randint(1, 96):02d}",
            lambda: f"dgx-{rng.randint(1, 40)}",
            lambda: f"ip-10-{rng.randint(0, 255)}-{rng.randint(0, 255)}-{rng.randint(2, 254)}",
            lambda: f"r{rng.randint(1, 30)}i{rng.randint(0, 3)}n{rng.randint(0, 17)}",
            lambda: f"cn-{rng.choice('abcd')}{rng.randint(1, 200):03d}",
            lambda: f"worker-{rng.randint(0, 63)}",
            lambda: (
                f"gke-pool-a100-{rng.getrandbits(32):08x}-"
                f"{rng.choice('bcdfgh')}{rng.choice('jklmnp')}{rng.randint(2, 9)}x"
            ),
            lambda: f"hgx{rng.randint(1, 64):02d}",
            lambda: f"aks-gpunp-{rng.randint(10**7, 10**8 - 1)}-vmss00000{rng.choice('0123456789ab')}",
        ]
        return rng.choice(styles)

    def _table(self) -> dict[str, Callable[[], str]]:
        rng = self.rng

        def hexes(n: int) -> str:
            return f"{rng.getrandbits(4 * n):0{n}x}"

        return {
            "node": self._host,
            "fqdn": lambda: f"{self._host()}.{rng.choice(['cluster.local', 'hpc.example', 'lab.example', 'orion'])}",
            "ip": lambda: (
                f"{rng.choice([10, 172, 192])}.{rng.randint(16, 31)}.{rng.randint(0, 250)}.{rng.randint(2, 250)}"
            ),
            "port": lambda: str(rng.choice([29500, 29400, 12355, 6379, 8476, 23456, rng.randint(20000, 60999)])),
            "eport": lambda: str(rng.randint(32768, 60999)),
            "pid": lambda: str(rng.randint(300, 4_100_000)),
            "uid": lambda: str(rng.randint(1000, 70000)),
            "user": lambda: rng.choice(_words()["users"]),
            "proj": lambda: rng.choice(_words()["projects"]),
            "job": lambda: str(rng.randint(1_000, 9_900_000)),
            "wd": self._work_dir,
            "script": lambda: rng.choice(_words()["scripts"]),
            "py": lambda: f"{self.get('env')}/bin/python{rng.choice(['', '3', '3.10', '3.11'])}",
            "env": lambda: rng.choice(
                [
                    "/opt/conda",
                    "/usr",
                    f"/home/{self.get('user')}/miniconda3/envs/{self.get('proj')}",
                    "/venv/main",
                    f"/home/{self.get('user')}/.venv",
                    "/usr/local",
                    "/opt/conda/envs/ptca",
                ]
            ),
            "pkg": lambda: (
                f"{self.get('env')}/lib/python{rng.choice(['3.7', '3.8', '3.9', '3.10', '3.10', '3.11', '3.12'])}"
                f"/{'dist-packages' if self.get('env') == '/usr/local' else 'site-packages'}"
            ),
            "data": lambda: rng.choice(
                [
                    f"/data/{self.get('proj')}",
                    f"/mnt/{rng.choice(['data', 'fsx', 'blob', 'nfs'])}/{self.get('user')}/{self.get('proj')}",
                    f"/scratch/{self.get('user')}/data",
                    f"/lustre/proj/{self.get('proj')}",
                    "./data",
                    f"/datasets/{rng.choice(['imagenet', 'coco', 'pile', 'laion', 'librispeech'])}",
                    f"/gpfs/{self.get('user')}/sets",
                ]
            ),
            "ckpt": lambda: rng.choice(
                [
                    f"checkpoints/step_{rng.randint(1, 400)}00",
                    f"/ckpt/{self.get('proj')}/global_step{rng.randint(100, 90000)}",
                    f"outputs/{self.get('proj')}/epoch_{rng.randint(1, 80)}.pt",
                    f"/mnt/ckpt/{self.get('user')}/last.ckpt",
                    f"runs/{rng.randint(1, 99)}/model_{rng.randint(1, 40)}.pth",
                ]
            ),
            "bus": lambda: f"0000:{hexes(2)}:00",
            "bdf": lambda: f"0000:{hexes(2)}:00.{rng.randint(0, 1)}",
            "gpu": lambda: str(rng.randint(0, 7)),
            "hexa": lambda: hexes(4),
            "hexb": lambda: hexes(8),
            "hexc": lambda: hexes(16),
            "addr": lambda: f"0x7f{hexes(10)}",
            "uuid": lambda: f"{hexes(8)}-{hexes(4)}-4{hexes(3)}-a{hexes(3)}-{hexes(12)}",
            "sha": lambda: hexes(64),
            "step": lambda: str(rng.randint(20, 98_000)),
            "ln": lambda: str(rng.randint(9, 1900)),
            "ms": lambda: str(rng.randint(100, 99_000)),
            "pod": lambda: (
                f"{self.get('proj')}-{rng.choice(['worker', 'master', 'node', 'launcher', 'train'])}"
                f"-{rng.randint(0, 15)}"
            ),
            "ns": lambda: rng.choice(
                ["ml", "research", "team-vision", "kubeflow", "default", "nlp-prod", f"user-{self.get('user')}"]
            ),
            "img": lambda: (
                f"{rng.choice(_words()['services'][2:4])}/{rng.choice(['ml', 'team', 'base'])}/{self.get('proj')}"
                f":{rng.choice(['latest', 'v12', '1.4.2', '24.05-py3', 'dev'])}"
            ),
            "bucket": lambda: rng.choice(_words()["buckets"]),
            "svc": lambda: rng.choice(_words()["services"]),
            "mod": lambda: rng.choice(_words()["models"]),
            "mac": lambda: ":".join(hexes(2) for _ in range(6)),
            "cluster": lambda: rng.choice(["orion", "k8s-ml", "hpc2", "vega", "apollo", "east-gpu"]),
            "loss": lambda: f"{rng.uniform(0.2, 9.8):.4f}",
            "rank": lambda: str(rng.randint(0, 7)),
            "world": lambda: str(rng.choice([2, 4, 8, 8, 16, 32, 64])),
        }

    def _work_dir(self) -> str:
        user, proj = self.get("user"), self.get("proj")
        places = [
            f"/home/{user}/{proj}",
            "/workspace",
            f"/workspace/{proj}",
            f"/scratch/{user}/{proj}",
            "/app",
            "/opt/ml/code",
            f"/mnt/home/{user}/code/{proj}",
            f"/nfs/users/{user}/{proj}",
            "/srv/code",
            "/code",
        ]
        return self.rng.choice(places)

    def get(self, name: str) -> str:
        """Return the value of a name, drawn at its first use.

        Raises:
            KeyError: the name is unknown.
        """
        clock = self._clock(name)
        if clock is not None:
            return clock
        if name not in self.known:
            self.known[name] = self._makers[name.rstrip("0123456789")]()
        return self.known[name]

    def _clock(self, name: str) -> str | None:
        at = self.now
        match name:
            case "ts":
                text = f"{at:%Y-%m-%d %H:%M:%S}"
            case "tsm":
                text = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}"
            case "tsx":
                text = f"{at:%Y-%m-%d_%H:%M:%S}"
            case "iso":
                text = f"{at:%Y-%m-%dT%H:%M:%S}"
            case "tsf":
                text = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond:06d}"
            case "sys":
                text = f"{at:%b %d %H:%M:%S}"
            case "hms":
                text = f"{at:%H:%M:%S}"
            case "kts":
                text = f"[{(at - self.boot).total_seconds():12.6f}]"
            case "glog":
                text = f"{at:%m%d %H:%M:%S}.{at.microsecond:06d}"
            case "glogn":
                text = f"{at:%m%d %H:%M:%S}.{at.microsecond:06d}{self.rng.randint(100, 999)}"
            case _:
                return None
        self.now += timedelta(seconds=self.rng.choice([0, 0, 0, 1, 1, 2]), microseconds=self.rng.randrange(900_000))
        return text

    def wait(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += timedelta(seconds=seconds)

    def fill(self, text: str) -> str:
        """Return the text with all values and choices filled in."""

        def put(found: re.Match[str]) -> str:
            braced, plain, choice = found.groups()
            if choice is None:
                return self.get(braced or plain)
            numbers = NUMBERS.match(choice)
            if numbers:
                return str(self.rng.randint(int(numbers[1]), int(numbers[2])))
            return self.fill(self.rng.choice(choice.split("|")))

        return PLACE.sub(put, text)
