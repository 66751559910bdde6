"""The rules of the policy, one concept a file; asked in the order of `service.recommend.advise`."""
