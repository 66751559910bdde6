"""Several workers with TF_CONFIG; something about one of them is wrong."""

import json
import os
import sys
import time

import tensorflow as tf
from fit import Fit, keras

job = Fit(epochs=3)
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
who = int(os.environ.get("WHO", 1)) % world
base = int(os.environ["MASTER_PORT"])
hosts = [f"127.0.0.1:{base + 7 * n}" for n in range(world)]
task = {"type": "worker", "index": rank}
if job.how == "index" and rank == who:
    task["index"] = world + 2
if job.how == "type" and rank == who:
    task["type"] = "trainer"
if job.how == "cluster":
    hosts = ["worker-" + str(n) for n in range(world)]
config = {"cluster": {"worker": hosts}, "task": task}
text = json.dumps(config)
if job.how == "json" and rank == who:
    text = text[:-4]
if job.how == "task" and rank == who:
    text = json.dumps({"cluster": config["cluster"]})
if job.how == "chief" and rank == who:
    text = json.dumps({"cluster": {"chief": hosts[:1]}, "task": task})
if job.how == "more" and rank == who:
    text = json.dumps({"cluster": {"worker": [*hosts, f"127.0.0.1:{base + 91}"]}, "task": task})
os.environ["TF_CONFIG"] = text
job.say(f"worker {rank} of {world}: {text[:60]}")
if job.how == "crash" and rank == who:
    print({"train": 3}["data"])
if job.how == "twice":
    keras.backend.clear_session()
    tf.ones(3) + 1
words = {}
if job.how == "nccl":
    words["communication_options"] = tf.distribute.experimental.CommunicationOptions(implementation=tf.distribute.experimental.CommunicationImplementation.NCCL)
strategy = tf.distribute.MultiWorkerMirroredStrategy(**words)
with strategy.scope():
    weights = tf.Variable(tf.ones((12, 4)))
x, _ = job.data(8)


@tf.function
def step(value):
    def one():
        total = tf.distribute.get_replica_context().all_reduce("SUM", tf.matmul(value, weights))
        weights.assign_sub(tf.reduce_mean(total) * 1e-3 * tf.ones((12, 4)))
        return tf.reduce_mean(total)

    return strategy.run(one)


for number in range(60):
    if number == 6 and rank == who:
        match job.how:
            case "shape":
                step(tf.constant(x[:3]))
            case "exit":
                os._exit(4)
            case "leave":
                sys.exit(0)
            case "raise":
                step(tf.constant(x[:, :7]))
            case "file":
                open(f"shards/{rank}.npy")
            case "sleep":
                time.sleep(90)
    job.say(f"[{rank}] step {number} {float(step(tf.constant(x))):.4f}")
    time.sleep(0.05)
