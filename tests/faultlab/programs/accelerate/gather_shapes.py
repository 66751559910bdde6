from loop import Accelerator, args, parts, torch, train

accelerator = Accelerator(cpu=True)


def hook(step, loss):
    if step == args.at:
        accelerator.gather(torch.ones(3 if accelerator.process_index != args.who else 5))


train(accelerator, *accelerator.prepare(*parts()), hook)
