"""The trained classifier: features, linear model, label fusion, training and storage."""
