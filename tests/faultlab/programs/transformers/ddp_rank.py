import os

from tune import Tokens, Trainer, args, model, options, torch


class Rows(Tokens):
    def __getitem__(self, index):
        row = super().__getitem__(index)
        if int(os.environ["RANK"]) == args.who and index > 16:
            row["input_ids"] = row["input_ids"] + 80
        return row


Trainer(model=model(), args=options(ddp_backend="gloo"), train_dataset=Rows()).train()
