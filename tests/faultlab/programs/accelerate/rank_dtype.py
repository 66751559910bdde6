from loop import Accelerator, args, parts, torch, train

accelerator = Accelerator(cpu=True)


def hook(step, loss):
    if step == args.at and accelerator.process_index == args.who:
        torch.zeros(2, dtype=torch.float64) @ torch.zeros(2)


train(accelerator, *accelerator.prepare(*parts()), hook)
