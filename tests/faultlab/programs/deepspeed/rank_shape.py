from zero import RANK, args, engine, torch, train


def hook(step, loss):
    if step == args.at and RANK == args.who:
        torch.randn(3, 16) @ torch.randn(8, 16)


train(engine(), hook)
