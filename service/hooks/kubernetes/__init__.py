"""The hook of Kubernetes: creates a new Job from the spec of a failed one."""
