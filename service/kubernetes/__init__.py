"""The only folder that imports the Kubernetes client: the cluster's API as JSON, its errors in the project's words."""
