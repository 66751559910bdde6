"""Headlines of failures: what happened in words, then the words of the log that identify it."""
