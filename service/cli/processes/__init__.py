"""Commands that run the parts of the service and feed events to them."""
