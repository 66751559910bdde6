"""How right the classifier is: metrics, baselines, comparisons, reports."""
