"""One module for each kind of receiver, and what they share."""
