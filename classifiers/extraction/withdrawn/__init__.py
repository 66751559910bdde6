"""Lines that look like the beginning of a failure and are none: withdrawn, with what they are instead."""
