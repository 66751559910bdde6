"""From a verdict and its history to ranked mitigations and one decision; pure."""
