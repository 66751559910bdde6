"""A demo of the whole service with four weeks of realistic job completions."""
