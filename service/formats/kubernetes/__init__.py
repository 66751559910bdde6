"""Objects of Kubernetes and of the operators that run training on it."""
