from tune import Tokens, Trainer, model, options, torch


class Raw(Tokens):
    def __getitem__(self, index):
        return {"text": "a", "label_name": "b"}


Trainer(model=model(), args=options(), train_dataset=Raw()).train()
