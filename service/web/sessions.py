"""Logged-in browsers: a random cookie stands for an account or a token; the sessions lie in the store."""

from datetime import timedelta

COOKIE = "faultline_session"
FORM_COOKIE = "faultline_form"
OIDC_COOKIE = "faultline_oidc"
LIFETIME = timedelta(hours=12)
