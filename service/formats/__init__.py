"""One module for each foreign format of a finished job; all give JobCompletion objects."""
