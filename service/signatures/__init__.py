"""Operators' own signatures: TOML files layered over the packaged catalogue, read again when they change."""
