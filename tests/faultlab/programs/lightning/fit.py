"""A small Lightning job: module, data, trainer, with what differs from run to run as options."""

import argparse
import os

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seen", default="bar", choices=("bar", "plain", "csv"))
parser.add_argument("--rows", type=int, default=64)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--how", default="")
parser.add_argument("--who", type=int, default=1)
args = parser.parse_args()
L.seed_everything(int(os.environ.get("LAB_SEED", 1)))


def data(rows=None, width=16):
    rows = rows or args.rows
    return DataLoader(TensorDataset(torch.randn(rows, width), torch.randint(0, 4, (rows,))), batch_size=8)


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(args.layers)], torch.nn.Linear(16, 4))

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.body(batch[0]), batch[1])
        self.log("train_loss", loss, prog_bar=True)
        if args.seen == "plain" and index % 2 == 0:
            print(f"epoch {self.current_epoch} batch {index} train_loss {loss.item():.4f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def trainer(**words):
    logger = L.pytorch.loggers.CSVLogger("logs") if args.seen == "csv" else False
    base = {"accelerator": "cpu", "max_epochs": args.epochs, "logger": logger, "enable_checkpointing": False,
            "enable_progress_bar": args.seen == "bar", "log_every_n_steps": 2}
    return L.Trainer(**{**base, **words})
