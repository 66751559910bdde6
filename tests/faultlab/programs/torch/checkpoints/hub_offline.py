from engine import Job, torch

job = Job().prepare()
job.say("fetching backbone weights")
if job.how == "hub":
    net = torch.hub.load("pytorch/vision:v0.10.0", "resnet18", trust_repo=True)
else:
    state = torch.hub.load_state_dict_from_url("https://download.pytorch.org/models/resnet18-f37072fd.pth")
