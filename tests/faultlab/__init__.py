"""The fault lab: small programs that fail for real, and the runner that captures their logs."""
