import os

import ray
from cell import Cell
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

cell = Cell()


def loop(config):
    rank = ray.train.get_context().get_world_rank()
    for step in range(5):
        if step == 3 and rank == 1:
            match config["how"]:
                case "key":
                    print(config["lr"])
                case "exit":
                    os._exit(3)
                case "kill":
                    os.kill(os.getpid(), 9)
                case "file":
                    open(f"shard-{rank}.bin")
                case "assert":
                    assert ray.train.get_context().get_world_size() == 4
        print(f"rank {rank} step {step}", flush=True)
        ray.train.report({"loss": 1.0 / (step + 1)})


DataParallelTrainer(
    loop,
    train_loop_config={"how": cell.how},
    scaling_config=ScalingConfig(num_workers=2 if cell.how != "many" else 9, resources_per_worker={"CPU": 0.5}),
    run_config=RunConfig(storage_path=os.path.abspath("runs"), failure_config=FailureConfig(max_failures=cell.args.retries)),
).fit()
