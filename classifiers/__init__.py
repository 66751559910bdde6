"""The library that classifies failed jobs: extraction of evidence, signatures, relevance, the trained classifier."""
