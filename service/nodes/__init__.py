"""Node events, exposure and suspicion of nodes, and repairs."""
