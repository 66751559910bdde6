"""One module for each kind of receiver, and their common parts."""
