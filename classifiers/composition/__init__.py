"""Composes labelled failures from templates: short texts and runs of many ranks."""
