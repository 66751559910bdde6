"""GET /signatures: the signatures in use and what each one matched."""
