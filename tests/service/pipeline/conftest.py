"""Tests of classifying stored failures again use the small model and the process of the tests of learning."""

from tests.service.learning.conftest import cases, model, world

__all__ = ["cases", "model", "world"]
