"""The registry of site layers: candidates, the gate, promotion and rollback."""
