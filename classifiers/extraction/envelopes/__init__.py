"""What log shippers and runners put around the lines of a program, and how to take it off again."""
