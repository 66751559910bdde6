import numpy as np
import ray
from cell import Cell
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

cell = Cell()


@ray.remote
def work():
    return 1


match cell.how:
    case "group":
        ray.get(placement_group([{"CPU": 4}] * 2, strategy="STRICT_SPREAD").ready(), timeout=3)
    case "bundle":
        place = placement_group([{"CPU": 1}])
        ray.get(work.options(scheduling_strategy=PlacementGroupSchedulingStrategy(place, placement_group_bundle_index=4)).remote())
    case "strategy":
        placement_group([{"CPU": 1}], strategy="DENSE")
    case "empty":
        placement_group([])
    case "removed":
        place = placement_group([{"CPU": 1}])
        ray.util.remove_placement_group(place)
        ray.get(work.options(scheduling_strategy=PlacementGroupSchedulingStrategy(place)).remote(), timeout=5)
    case "node":
        ray.get(work.options(scheduling_strategy=NodeAffinitySchedulingStrategy("ab" * 28, soft=False)).remote(), timeout=8)
    case "negative":
        work.options(num_cpus=-1).remote()
    case "option":
        work.options(cpus=1).remote()
    case "store":
        kept = [ray.put(np.ones(6 << 20)) for _ in range(1)]
        ray.get(ray.put(np.ones(90 << 20)), timeout=5)
    case "lock":
        import threading

        ray.put(threading.Lock())
    case "call":
        work()
    case "double":
        ray.init(num_cpus=1)
