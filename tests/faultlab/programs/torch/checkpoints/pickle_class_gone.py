import sys
import types

from engine import Job, torch

job = Job().prepare()
if job.how == "save":
    legacy = types.ModuleType("models_v1")
    exec("class Backbone:\n    width = 4", legacy.__dict__)
    sys.modules["models_v1"] = legacy
    legacy.Backbone.__module__ = "models_v1"
    torch.save(legacy.Backbone(), "backbone.pt")
    sys.exit()
net = torch.load("backbone.pt", weights_only=False)
