"""The weekly quality report: built purely, rendered, published."""
