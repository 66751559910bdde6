"""The rules of the policy, one topic per file; `service.recommend.advise` defines their order."""
