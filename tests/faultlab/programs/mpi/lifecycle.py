import numpy as np
from mpi4py import MPI
from world import World


def fault(world):
    match world.how:
        case "after":
            MPI.Finalize()
            world.comm.Barrier()
        case "twice":
            MPI.Init()
        case "spawn":
            MPI.COMM_SELF.Spawn("./worker_bin", maxprocs=2).Barrier()
        case "open":
            MPI.File.Open(world.comm, "ckpt/step.bin", MPI.MODE_RDONLY)
        case "write":
            handle = MPI.File.Open(world.comm, f"/proc/step{world.at}.bin", MPI.MODE_WRONLY | MPI.MODE_CREATE)
            handle.Write_at(0, np.zeros(4))
        case "window":
            window = MPI.Win.Create(np.zeros(4), comm=world.comm)
            window.Lock(0)
            window.Put(np.zeros(90), (world.rank + 1) % world.size, target=(90_000, 90))
            window.Unlock(0)
        case "handler":
            world.comm.Set_errhandler(MPI.ERRORS_ARE_FATAL)
            world.comm.Send(np.zeros(3), dest=99)
        case "port":
            MPI.COMM_SELF.Connect("tcp://127.0.0.1:1")


World(who=-1).run(fault)
