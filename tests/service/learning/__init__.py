"""Tests of the registry of site layers."""
