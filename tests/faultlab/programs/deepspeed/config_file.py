import deepspeed
from zero import args, torch

net = torch.nn.Linear(4, 4)
deepspeed.initialize(model=net, model_parameters=net.parameters(), config=args.how)
