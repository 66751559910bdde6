from engine import Job, torch

job = Job().prepare()
job.train()
scores = torch.tensor([0.1, float("inf"), 0.2])
weights = torch.softmax(scores - scores.max(), dim=0)
print(torch.multinomial(weights, 1))
