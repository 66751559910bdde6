"""Tests of what is stored for a later classification use the small model and the process of the tests of learning."""

from tests.service.learning.conftest import cases, model, world

__all__ = ["cases", "model", "world"]
