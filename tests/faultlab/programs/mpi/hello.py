import sys

from mpi4py import MPI

print(f"hello from {MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size} with {len(sys.argv) - 1} options")
