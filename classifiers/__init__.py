"""The library that says why a job failed: words, evidence, signatures, the trained text classifier."""
