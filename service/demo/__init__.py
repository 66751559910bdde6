"""A believable day on a cluster, played through the whole service."""
