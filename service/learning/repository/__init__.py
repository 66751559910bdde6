"""The SQL of site layers and of runs that classify stored failures again."""
