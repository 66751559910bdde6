import os

from engine import Job, torch

job = Job().prepare()
job.train(until=3)
job.say("downloading weights")
state = torch.hub.load_state_dict_from_url(os.environ["WEIGHTS"] + "/resnet50.pth", progress=False)
