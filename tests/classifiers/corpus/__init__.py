"""The corpus under test."""
