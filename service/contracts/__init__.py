"""The wire contracts: job completion, verdict, and results shared between rooms."""
