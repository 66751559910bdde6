"""The optimiser is wrapped or used in a way that Horovod refuses."""

from world import World, hvd, torch

job = World(steps=80)
how = job.how
if how != "before-init":
    hvd.init()
job.prepare()
named = list(job.model.named_parameters())
words = {"named_parameters": named}
if how == "names-only":
    words["named_parameters"] = [p for _, p in named]
elif how == "twice":
    words["named_parameters"] = [("weight", p) for _, p in named]
elif how == "some":
    words["named_parameters"] = named[:-1]
elif how == "passes":
    words["backward_passes_per_step"] = 0
elif how == "predivide":
    words |= {"op": hvd.Sum, "gradient_predivide_factor": 2.0}
elif how == "groups":
    words["groups"] = [[p for _, p in named], [named[0][1]]]
elif how == "keyword":
    words["sparse_as_dense_gradients"] = True
optimizer = hvd.DistributedOptimizer(job.optimizer, **words)
if how == "before-init":
    job.say(f"world size {hvd.size()}")
for step, (x, y) in job.steps():
    optimizer.zero_grad()
    loss = job.criterion(job.model(x), y)
    loss.backward()
    if how == "accumulate" and step == job.at:
        job.criterion(job.model(x), y).backward()
    if how == "zero" and step == job.at:
        optimizer.zero_grad()
    if how == "closed" and step == job.at:
        hvd.shutdown()
    optimizer.step()
    job.report(step, float(loss.detach()))
