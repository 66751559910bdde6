"""Site layers: fitting them on labels, the gate, promotion and rollback."""
