"""A training loop written with Accelerate, on synthetic data."""

import argparse
import os

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--how", default="")
parser.add_argument("--who", type=int, default=1)
parser.add_argument("--at", type=int, default=6)
parser.add_argument("--style", default="print", choices=("print", "logging", "tqdm"))
args = parser.parse_args()
torch.manual_seed(int(os.environ.get("LAB_SEED", 1)))
if args.style == "logging":
    import logging

    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(levelname)s - %(name)s - %(message)s")


def parts():
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    rows = TensorDataset(torch.randn(256, 8), torch.randint(0, 2, (256,)))
    return net, torch.optim.AdamW(net.parameters()), DataLoader(rows, batch_size=4)


def say(accelerator, text):
    if args.style == "logging":
        get_logger("train").info(text)
    else:
        accelerator.print(text)


def train(accelerator, net, optimizer, loader, hook):
    for step, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(net(x), y)
        hook(step, loss)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if accelerator.is_main_process or args.style == "print":
            print(f"[{accelerator.process_index}] step {step} loss {loss.item():.4f}") if args.style == "print" else say(accelerator, f"step {step} loss {loss.item():.4f}")
