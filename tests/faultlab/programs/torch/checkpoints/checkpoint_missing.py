from engine import Job, torch

job = Job().prepare()
job.say("resuming")
state = torch.load({"": "checkpoints/last.ckpt", "best": "output/best_model.pth"}[job.how])
job.model.load_state_dict(state)
