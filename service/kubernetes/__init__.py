"""Access to the Kubernetes API as JSON. Only this package imports the Kubernetes client and translates its errors."""
