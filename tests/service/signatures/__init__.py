"""Tests of the package service.signatures."""
