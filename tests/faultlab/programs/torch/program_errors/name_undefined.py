from engine import Job, torch


def validate(model):
    with torch.no_grad():
        return sum(float(model(x).mean()) for x, _ in val_loader)


job = Job().prepare()
job.train()
job.say(f"val {validate(job.model)}")
