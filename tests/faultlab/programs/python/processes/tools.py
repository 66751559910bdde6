import os
import shutil
import subprocess

from job import Job

TOOLS = {
    "ffmpeg": ["ffmpeg", "-i", "clip.mp4", "-ar", "16000", "clip.wav"],
    "nvcc": ["nvcc", "--version"],
    "sox": ["sox", "in.wav", "-r", "16000", "out.wav"],
    "script": ["./scripts/preprocess.sh", "--all"],
    "smi": ["nvidia-smi", "--query-gpu=memory.used", "--format=csv"],
}


def fault(job):
    if job.how == "exec":
        os.execvp("deepspeed", ["deepspeed", "--num_gpus", "8", "train.py"])
    if job.how == "move":
        return shutil.move("tokenizer.json", "/mnt/models/tokenizer.json")
    if job.how == "shell":
        return subprocess.run("aws s3 sync s3://ml-data/train data/", shell=True, check=True)
    return subprocess.check_output(TOOLS[job.how])


Job().run(fault)
