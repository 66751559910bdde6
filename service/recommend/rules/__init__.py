"""The rules of the policy, one concept a file; context in the order of `service.recommend.advise`."""
