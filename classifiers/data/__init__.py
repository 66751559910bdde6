"""Labelled cases, signatures, cues and failure kinds: the data that the classifier is made from."""
