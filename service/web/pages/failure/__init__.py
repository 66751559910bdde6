"""The page of one failure and its parts."""
