import numpy as np
from engine import Job, torch

job = Job().prepare()
job.train()
calls = {
    "float": lambda: np.float_(3.0),
    "bool": lambda: np.bool8(True),
    "gels": lambda: torch.gels(torch.randn(3, 1), torch.randn(3, 3)),
    "six": lambda: torch._six.string_classes,
    "product": lambda: np.product([2, 3]),
}
calls[job.how]()
