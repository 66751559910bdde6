"""Failures for measuring only: real runs of declared programs that no training data knows."""
