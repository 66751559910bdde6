"""Functions for the pages and the API of people."""
