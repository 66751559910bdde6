"""Reads the PyTorch Flight Recorder dumps of several ranks and finds the collective that failed."""
