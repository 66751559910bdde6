"""The hook of Slurm: requeues or submits jobs again, by commands or by slurmrestd."""
