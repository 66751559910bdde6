"""The lines of the last successful run of each job."""
