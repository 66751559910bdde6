"""Site layers, their gate and promotion; classifying stored failures again with another model."""
