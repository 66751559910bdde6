from engine import Job, torch

job = Job().prepare()
policy = torch.nn.Linear(4, 3)
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    logits = policy(torch.randn(2, 4))
    if step >= job.at:
        logits = logits / 0.0 * 0.0
    torch.distributions.Categorical(logits=logits).sample()
