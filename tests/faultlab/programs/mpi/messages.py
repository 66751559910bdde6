import numpy as np
from mpi4py import MPI
from world import World


def fault(world):
    comm, rank = world.comm, world.rank
    match world.how:
        case "truncate":
            if rank == 0:
                comm.Send(np.zeros(100), dest=1)
            elif rank == 1:
                comm.Recv(np.empty(10), source=0)
        case "bcast":
            comm.Bcast(np.zeros(64 if rank == 0 else 8), root=0)
        case "dest":
            comm.Send(np.zeros(4), dest=world.size + 3)
        case "root":
            comm.Bcast(np.zeros(4), root=world.size)
        case "tag":
            comm.Send(np.zeros(4), dest=0, tag=-7)
        case "dtype":
            comm.Allreduce(np.zeros(8, dtype=np.float32 if rank else np.float64), np.zeros(8), op=MPI.SUM)
        case "object":
            comm.Allreduce(np.array([None, 1], dtype=object), np.zeros(2))
        case "scatter":
            comm.scatter(list(range(world.size - 1)) if rank == 0 else None, root=0)
        case "pickle":
            comm.bcast((lambda x: x) if rank == 0 else None, root=0)
        case "gatherv":
            comm.Gatherv(np.zeros(rank + 5), [np.zeros(world.size), [1] * world.size] if rank == 0 else None, root=0)
        case "contiguous":
            comm.Bcast(np.zeros((8, 8))[:, ::2], root=0)
        case "split":
            group = comm.Split(0 if rank == 0 else MPI.UNDEFINED)
            group.Allreduce(np.zeros(2), np.zeros(2))
        case "operator":
            comm.Allreduce(np.zeros(4), np.zeros(4), op=MPI.BAND)
        case "alias":
            buffer = np.zeros(6)
            comm.Allreduce(buffer, buffer)
        case "freed":
            other = comm.Dup()
            other.Free()
            other.Barrier()
        case "alltoall":
            comm.alltoall([1] * (world.size + 1))
        case "cart":
            comm.Create_cart([world.size, 4])


World(who=-1).run(fault)
