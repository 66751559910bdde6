from engine import Job, torch

job = Job().prepare()
job.train(until=4)
if job.how == "backend":
    step = torch.compile(lambda x: x.sin() + 1, backend="nvprims_nvfuser")
elif job.how == "graph":

    @torch.compile(fullgraph=True, backend="eager")
    def step(x):
        if x.sum() > 0:
            return x + 1
        return x - 1
elif job.how == "fake":

    @torch.compile(backend="eager")
    def step(x):
        return x @ torch.ones(9, 3)
else:

    @torch.compile(fullgraph=True, backend="eager")
    def step(x):
        print(x)
        torch._dynamo.graph_break()
        return x + 1


print(step(torch.randn(3, 4)))
