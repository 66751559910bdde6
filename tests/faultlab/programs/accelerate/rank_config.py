import os

from loop import Accelerator, args, parts, torch, train

accelerator = Accelerator(cpu=True)


def hook(step, loss):
    if step == args.at and accelerator.process_index == args.who:
        os.environ["EVAL_SPLIT"]


train(accelerator, *accelerator.prepare(*parts()), hook)
