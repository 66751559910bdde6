"""Drift monitoring: whether recent failures differ from earlier ones in a way that the model does not cover."""
