"""Lines that look like the beginning of a failure and are none: demoted, with what they are instead."""
