"""A toy fine-tuning job on the Trainer: tiny model from a config, synthetic tokens."""

import argparse
import os

import torch
import transformers
from transformers import Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="gpt2", choices=("gpt2", "bert"))
parser.add_argument("--bar", type=int, default=1)
parser.add_argument("--verbose", type=int, default=0)
parser.add_argument("--rows", type=int, default=32)
parser.add_argument("--how", default="")
parser.add_argument("--who", type=int, default=1)
args = parser.parse_args()
transformers.set_seed(int(os.environ.get("LAB_SEED", 1)))
if args.verbose:
    transformers.logging.set_verbosity_info()


class Tokens(torch.utils.data.Dataset):
    def __init__(self, rows=None, top=90):
        self.rows, self.top = rows or args.rows, top

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        ids = torch.randint(0, self.top, (12,))
        labels = ids if args.arch == "gpt2" else torch.tensor(index % 2)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def model(vocab=100):
    if args.arch == "bert":
        config = transformers.BertConfig(vocab_size=vocab, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
        return transformers.BertForSequenceClassification(config)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=vocab, n_embd=16, n_layer=1, n_head=2, n_positions=32))


def options(**words):
    base = {"output_dir": "out", "use_cpu": True, "per_device_train_batch_size": 4, "num_train_epochs": 2, "logging_steps": 2,
            "report_to": [], "disable_tqdm": not args.bar, "save_strategy": "no"}
    return TrainingArguments(**{**base, **words})
