"""Tests of the package service.explain."""
