"""Tests of the lines that are demoted from the beginnings of a failure."""
