"""Drains the outbox: tells others what was diagnosed and decided."""
