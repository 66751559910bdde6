from engine import Job

job = Job().prepare()
total, seen = 0.0, 0
for step, (x, y) in job.steps():
    loss = job.learn(x, y)
    job.report(step, loss)
    if step == job.at:
        break
val_batches = [batch for batch in [] if batch]
job.say("epoch finished, running validation")
print("val loss", total / len(val_batches))
