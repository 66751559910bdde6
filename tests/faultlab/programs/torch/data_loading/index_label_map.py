from engine import Job

job = Job().prepare()
names = {"cat": 0, "dog": 1, "bird": 2}
annotations = ["cat", "dog", "bird", "dog"] * (job.at + 1) + ["aeroplane"]
for step, name in enumerate(annotations):
    x, y = job.make(job.args.batch)
    y[0] = names[name]
    if job.args.model in {"mlp", "cnn", "lstm"}:
        job.report(step, job.learn(x, y))
    else:
        job.report(step, float(names[name]))
