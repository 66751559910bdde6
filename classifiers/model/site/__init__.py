"""The site layer: what a site's labels change in the verdicts of the packaged model."""
