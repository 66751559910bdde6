"""Tests of service.hooks.slurm."""
