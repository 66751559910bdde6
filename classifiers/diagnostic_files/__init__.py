"""Readers of diagnostic files beside logs: torchrun error files, nvidia-smi, sacct, NCCL RAS, py-spy."""
