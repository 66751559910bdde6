"""Tables. Automation: lineages, requests, incidents and outcomes."""
