"""A training loop on made-up numbers; `how` says what becomes of it."""

import os
import sys
import time

how = sys.argv[1] if len(sys.argv) > 1 else ""
rank, world = int(os.environ.get("SLURM_PROCID", 0)), int(os.environ.get("SLURM_NTASKS", 1))
who = world - 1
print(f"[{rank}/{world}] {os.environ.get('SLURMD_NODENAME', '')}: training starts, job {os.environ.get('SLURM_JOB_ID')}", flush=True)
weights, cache = [0.1 * n for n in range(32)], []
for step in range(300 if how else 4000):
    weights = [w * 0.999 for w in weights]
    if step % 5 == 0:
        print(f"[{rank}] step {step} loss {sum(w * w for w in weights):.4f}", flush=True)
    time.sleep(0.05)
    if how == "memory" or (how == "memory_rank" and rank == who):
        cache.append(bytearray(12 << 20))
        for block in range(0, 12 << 20, 4096):
            cache[-1][block] = 1
    if step != 12 or rank != who:
        continue
    match how:
        case "file":
            open(f"/lustre/datasets/imagenet/shard-{rank:05d}.tar", "rb").read()
        case "import":
            import flash_attn_3

            print(flash_attn_3.__version__)
        case "key":
            print({"lr": 0.1}["weight_decay"])
        case "segv":
            import ctypes

            ctypes.string_at(0)
        case "exit":
            os._exit(3)
        case "kill":
            os.kill(os.getpid(), 9)
        case "abort":
            os.abort()
        case "disk":
            with open("small-disk/model.bin", "wb", buffering=0) as out:
                for _ in range(64):
                    out.write(bytes(1 << 16))
        case "denied":
            open("/etc/shadow").read()
        case "done":
            sys.exit(0)
