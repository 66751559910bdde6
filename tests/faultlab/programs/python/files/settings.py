import dataclasses
import enum
import json
import os

import yaml
from job import Job


class Schedule(enum.Enum):
    COSINE = "cosine"
    LINEAR = "linear"


@dataclasses.dataclass
class Optimizer:
    lr: float
    weight_decay: float = 0.0
    schedule: str = "cosine"


def fault(job):
    text = os.environ["TRAIN_CONFIG"]
    if job.how == "dataclass":
        return Optimizer(**yaml.safe_load(text))
    if job.how == "enum":
        return Schedule(json.loads(text)["schedule"])
    if job.how == "int":
        return int(yaml.safe_load(text)["batch_size"])
    if job.how == "float":
        return float(text.split("=")[1])
    if job.how == "math":
        return job.weights * yaml.safe_load(text)["lr"]
    if job.how == "unpack":
        height, width = yaml.safe_load(text)["image_size"]
        return height * width
    return None


Job().run(fault)
