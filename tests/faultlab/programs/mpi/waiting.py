import time

import numpy as np
from world import World


def fault(world):
    comm, rank = world.comm, world.rank
    match world.how:
        case "both":
            comm.Recv(np.empty(4), source=1 - rank if rank < 2 else 0)
        case "absent":
            if rank != world.size - 1:
                comm.Barrier()
                comm.Barrier()
            time.sleep(60)
        case "order":
            if rank == 0:
                comm.bcast(3, root=0)
                comm.Barrier()
            else:
                comm.Barrier()
                comm.Barrier()
                comm.bcast(None, root=0)
        case "slow":
            if rank == 0:
                time.sleep(60)
            comm.allgather(rank)
        case "tag":
            if rank == 0:
                comm.send(1, dest=1, tag=3)
            elif rank == 1:
                comm.recv(source=0, tag=4)


World(who=-1).run(fault)
