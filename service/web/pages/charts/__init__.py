"""Charts that the pages draw as SVG from numbers."""
