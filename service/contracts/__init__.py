"""The wire contracts: job completion, node event and verdict, and vocabulary shared by several packages."""
