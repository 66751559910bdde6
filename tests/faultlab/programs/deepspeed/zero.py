"""A small DeepSpeed job on the CPU accelerator."""

import argparse
import os

import deepspeed
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--how", default="")
parser.add_argument("--who", type=int, default=1)
parser.add_argument("--at", type=int, default=5)
parser.add_argument("--stage", type=int, default=0)
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--local_rank", type=int, default=0)
args, _ = parser.parse_known_args()
torch.manual_seed(int(os.environ.get("LAB_SEED", 1)))
RANK = int(os.environ.get("RANK", 0))


def config(**words):
    world = int(os.environ.get("WORLD_SIZE", 1))
    base = {"train_batch_size": 4 * world, "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
            "zero_optimization": {"stage": args.stage}, "steps_per_print": 5}
    return {**base, **words}


def engine(net=None, **words):
    net = net or torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    return deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config(**words))[0]


def train(run, hook=lambda step, loss: None):
    for step in range(args.steps):
        loss = torch.nn.functional.cross_entropy(run(torch.randn(4, 16)), torch.randint(0, 4, (4,)))
        hook(step, loss)
        run.backward(loss)
        run.step()
        if RANK == 0:
            print(f"step={step} loss={loss.item():.4f} lr={run.get_lr()[0]:.1e}")
