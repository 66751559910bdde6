"""What surrounds a failing line in life: options, models, synthetic data, a training loop that logs in many styles."""

import argparse
import json
import logging
import os
import random
import sys
import time
import warnings

import torch
from torch import nn

STYLES = ("print", "logging", "json", "tqdm", "megatron", "hydra", "glog", "keras", "hf", "loguru", "mm", "quiet", "rank", "csv")
DATASETS = ("imagenet-100", "wikitext-103", "librispeech-clean", "coco-mini", "openwebtext-sample", "cifar10", "criteo-1tb-sub")


class Tiny(nn.Module):
    """A transformer of toy size over token ids."""

    def __init__(self, vocab=128, dim=32, layers=2, heads=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, dim * 2, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids)))


class Recurrent(nn.Module):
    """An LSTM over features, classified at its end."""

    def __init__(self, width=16, hidden=32, classes=10):
        super().__init__()
        self.rnn = nn.LSTM(width, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.fc(out[:, -1])


def build(name):
    """(model, batch maker, loss) of a named kind."""
    ce = nn.CrossEntropyLoss()
    if name == "mlp":
        model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        return model, lambda n: (torch.randn(n, 20), torch.randint(0, 10, (n,))), ce
    if name == "cnn":
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)
        )
        return model, lambda n: (torch.randn(n, 3, 16, 16), torch.randint(0, 10, (n,))), ce
    if name == "gpt":
        model = Tiny()

        def lm(out, target):
            return ce(out.flatten(0, 1), target.flatten())

        return model, lambda n: (torch.randint(0, 128, (n, 12)), torch.randint(0, 128, (n, 12))), lm
    if name == "lstm":
        return Recurrent(), lambda n: (torch.randn(n, 8, 16), torch.randint(0, 10, (n,))), ce
    if name == "ae":
        model = nn.Sequential(nn.Linear(32, 8), nn.GELU(), nn.Linear(8, 32))
        return model, lambda n: (lambda x: (x, x))(torch.randn(n, 32)), nn.MSELoss()
    raise SystemExit(f"unknown model {name}")


class Job:
    """Options, identity among the ranks, log, model, optimiser, data."""

    def __init__(self, **defaults):
        parser = argparse.ArgumentParser()
        parser.add_argument("--model", default="mlp")
        parser.add_argument("--style", default="print", choices=STYLES)
        parser.add_argument("--steps", type=int, default=60)
        parser.add_argument("--at", type=int, default=20)
        parser.add_argument("--every", type=int, default=1)
        parser.add_argument("--batch", type=int, default=8)
        parser.add_argument("--lr", type=float, default=1e-2)
        parser.add_argument("--noise", type=int, default=0)
        parser.add_argument("--who", type=int, default=1, help="the rank that matters")
        parser.add_argument("--how", default="", help="which way through the program")
        parser.add_argument("--all-ranks-log", action="store_true")
        parser.add_argument("--dataset", default="")
        parser.set_defaults(**defaults)
        self.args = parser.parse_args()
        self.rank = int(os.environ.get("RANK", 0))
        self.world = int(os.environ.get("WORLD_SIZE", 1))
        seed = int(os.environ.get("LAB_SEED", 1))
        self.draw = random.Random(seed * 7919 + self.rank)
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.at = self.args.at
        self.how = self.args.how
        self.who = self.args.who % max(self.world, 1)
        self.dataset = self.args.dataset or DATASETS[(seed + self.at) % len(DATASETS)]
        self.began = time.time()
        self.speaks = self.rank == 0 or self.args.all_ranks_log
        self.bar = None
        self.model = self.make = self.criterion = self.optimizer = None
        if self.args.style in {"logging", "hydra", "loguru", "mm"}:
            forms = {
                "logging": "%(asctime)s %(levelname)s %(name)s: %(message)s",
                "hydra": "[%(asctime)s][%(name)s][%(levelname)s] - %(message)s",
                "loguru": "%(asctime)s.000 | %(levelname)-8s | __main__:train:118 - %(message)s",
                "mm": "%(asctime)s - mmengine - %(levelname)s - %(message)s",
            }
            stamps = {"mm": "%m/%d %H:%M:%S", "loguru": "%Y-%m-%d %H:%M:%S"}
            logging.basicConfig(level=logging.INFO, format=forms[self.args.style], datefmt=stamps.get(self.args.style), stream=sys.stderr)
        self.logger = logging.getLogger("train" if self.world == 1 else f"train.r{self.rank}")

    def say(self, text):
        """One line in the job's style."""
        style = self.args.style
        if not self.speaks or style == "quiet":
            return
        if style in {"logging", "hydra", "loguru", "mm"}:
            self.logger.info(text)
        elif style == "json":
            print(json.dumps({"ts": round(time.time(), 3), "level": "info", "rank": self.rank, "msg": text}))
        elif style == "glog":
            now = time.time()
            print(time.strftime("I%m%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d} {os.getpid()} train.py:88] {text}", file=sys.stderr)
        elif style == "rank":
            print(f"[rank {self.rank}] [{time.strftime('%H:%M:%S')}] {text}")
        else:
            print(text)

    def banner(self):
        """What jobs print before they train."""
        count = sum(p.numel() for p in self.model.parameters()) if self.model else 0
        self.say(f"Arguments: {vars(self.args)}" if self.draw.random() < 0.4 else f"Starting run on {self.dataset}, world size {self.world}")
        self.say(f"Model has {count:,} parameters")
        if self.args.noise:
            self.say(f"Loading {self.dataset} ... done ({self.draw.randint(1000, 90000)} samples, {self.draw.randint(1, 40)} shards)")
            if self.args.noise > 1:
                warnings.warn("The given NumPy array is not writable, and PyTorch does not support non-writable tensors.", UserWarning, stacklevel=2)
                self.say("wandb: Tracking run with wandb version 0.19.1; W&B syncing is set to `offline`")
            if self.args.noise > 2:
                self.say("retrying download of tokenizer config (attempt 1/3): Connection reset by peer")
                self.say("download succeeded on attempt 2")
                warnings.warn("`torch.utils.checkpoint.checkpoint` called without use_reentrant; this parameter will be required", FutureWarning, stacklevel=2)

    def prepare(self):
        """Model, data maker, criterion, optimiser; prints the banner."""
        self.model, self.make, self.criterion = build(self.args.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.args.lr, momentum=0.9)
        self.banner()
        return self

    def steps(self):
        """(step, batch) pairs."""
        self.bar = None
        for step in range(self.args.steps):
            yield step, self.make(self.args.batch)

    def learn(self, x, y, model=None):
        """One optimiser step; the loss as a float."""
        model = model or self.model
        self.optimizer.zero_grad()
        loss = self.criterion(model(x), y)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def report(self, step, loss):
        """The step's line in the job's style."""
        if step % self.args.every or not self.speaks:
            return
        style, total, lr = self.args.style, self.args.steps, self.args.lr
        speed = self.draw.uniform(80, 120)
        if style == "tqdm":
            if self.bar is None:
                from tqdm import tqdm

                self.bar = tqdm(total=total, desc="Epoch 1", mininterval=0.05, file=sys.stderr, ncols=90)
            self.bar.update(step - self.bar.n)
            self.bar.set_postfix(loss=f"{loss:.3f}")
        elif style == "json":
            print(json.dumps({"ts": round(time.time(), 3), "rank": self.rank, "step": step, "loss": loss, "lr": lr}))
        elif style == "megatron":
            print(f" iteration {step:8d}/{total:8d} | consumed samples: {step * self.args.batch:12d} | elapsed time per iteration (ms): {speed:.1f} | "
                  f"learning rate: {lr:.3E} | global batch size: {self.args.batch * self.world:5d} | lm loss: {loss:.6E} | loss scale: 1.0 | "
                  f"number of skipped iterations:   0 | number of nan iterations:   0 |")
        elif style == "keras":
            done = int(20 * (step + 1) / total)
            print(f"{step + 1}/{total} [{'=' * done}>{'.' * (20 - done)}] - ETA: {total - step}s - loss: {loss:.4f}")
        elif style == "hf":
            print({"loss": round(loss, 4), "grad_norm": round(speed / 50, 4), "learning_rate": lr, "epoch": round(step / total, 2)})
        elif style == "mm":
            self.logger.info("Epoch(train)  [1][%5d/%d]  lr: %.4e  eta: 0:%02d:%02d  time: 0.1%d  data_time: 0.00%d  loss: %.4f", step, total, lr, (total - step) // 60, (total - step) % 60, step % 10, step % 7, loss)
        elif style == "csv":
            print(f"{time.time():.2f},{step},{loss:.5f},{lr}")
        elif style in {"logging", "hydra"}:
            self.say(f"epoch 0 step {step} | loss {loss:.4f} | {speed:.1f} samples/s | lr {lr:.2e}")
        elif style != "quiet":
            self.say(f"step {step}/{total} loss={loss:.4f} lr={lr:.1e}")
        if self.args.noise > 1 and step and step % 25 == 0:
            self.say(f"Saved checkpoint to checkpoints/step_{step:06d}.pt" if step % 50 else f"eval: accuracy {self.draw.uniform(0.1, 0.6):.3f}")

    def train(self, until=None, model=None):
        """Train until that step (exclusive; default: the step that matters); gives the last loss."""
        loss = 0.0
        for step, (x, y) in self.steps():
            if step >= (self.at if until is None else until):
                break
            loss = self.learn(x, y, model)
            self.report(step, loss)
        return loss

    def join(self, backend="gloo", **words):
        """Form the process group."""
        import datetime

        import torch.distributed as dist

        if "seconds" in words:
            words["timeout"] = datetime.timedelta(seconds=words.pop("seconds"))
        dist.init_process_group(backend, **words)
        self.say(f"process group ready: backend {backend}, rank {dist.get_rank()} of {dist.get_world_size()}")
        return dist

    def parallel(self, **words):
        """Wrap the model for data parallel training."""
        from torch.nn.parallel import DistributedDataParallel

        self.model = DistributedDataParallel(self.model, **words)
        return self.model
