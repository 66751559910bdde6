"""Formats under test."""
