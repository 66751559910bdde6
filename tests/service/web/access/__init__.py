"""Who may send what to the API and the pages: logins, roles, limits, and what is recorded of refusals."""
