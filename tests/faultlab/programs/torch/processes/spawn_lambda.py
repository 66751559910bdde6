import torch.multiprocessing as mp
from engine import Job

if __name__ == "__main__":
    job = Job().prepare()
    mp.spawn(lambda rank: print(rank), nprocs=2)
