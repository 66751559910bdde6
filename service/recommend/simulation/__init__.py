"""A fleet with known truth, in which policies are compared; see `service.recommend.simulate`."""
