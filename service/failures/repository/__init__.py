"""The SQL of failures, their verdicts, logs and lists."""
