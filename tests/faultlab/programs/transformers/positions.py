from tune import Tokens, Trainer, args, model, options, torch


class Long(Tokens):
    def __getitem__(self, index):
        ids = torch.randint(0, 90, (40 if args.arch == "gpt2" else 600,))
        return {"input_ids": ids, "labels": ids if args.arch == "gpt2" else torch.tensor(0)}


Trainer(model=model(), args=options(), train_dataset=Long()).train()
