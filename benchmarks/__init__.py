"""Speed, memory and retrieval quality; each module is a command that prints a table."""
