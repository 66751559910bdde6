"""Puts the evidence of a case together: what began, what followed from it, what has nothing to do with it."""
