"""Tests of the lines that are withdrawn from the beginnings of a failure."""
