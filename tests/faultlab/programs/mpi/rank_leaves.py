import os
import sys

from world import World


def fault(world):
    match world.how:
        case "exit":
            os._exit(world.at % 5 + 2)
        case "abort":
            world.comm.Abort(world.at % 9 + 1)
        case "os":
            os.abort()
        case "zero":
            os._exit(0)
        case "finalize":
            from mpi4py import MPI

            sys.stdout.flush()
            MPI.Finalize()
            os._exit(1)


World().run(fault)
