"""The SQL of reports and the counts they are made of."""
