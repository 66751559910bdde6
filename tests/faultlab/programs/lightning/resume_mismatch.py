import sys

from fit import L, Net, args, data, torch, trainer


class Wide(Net):
    def __init__(self):
        super().__init__()
        self.body[-1] = torch.nn.Linear(16, 4 if args.how == "save" else 7)


job = trainer(enable_checkpointing=True)
if args.how == "save":
    job.fit(Wide(), data())
    job.save_checkpoint("last.ckpt")
    sys.exit()
job.fit(Wide(), data(), ckpt_path="last.ckpt")
