"""Node events among the evidence: which of them count, and what they come before."""
