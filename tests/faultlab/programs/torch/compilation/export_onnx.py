from engine import Job, torch

job = Job().prepare()
job.train()
job.say("exporting model")
torch.onnx.export(job.model, (job.make(1)[0],), "model.onnx")
