"""Readers of diagnostic files that come with logs: torchrun error files, nvidia-smi, sacct, NCCL RAS, py-spy."""
