"""Commands that classify, and those that train, measure or adjust what they classify with."""
