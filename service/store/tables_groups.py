"""Tables. Groups of failures, feedback and words to search."""
