"""Tables. Published reports and rolled-up counts."""
