"""Names and lifetime of session cookies. A random cookie identifies a session in the store."""

from datetime import timedelta

COOKIE = "faultline_session"
FORM_COOKIE = "faultline_form"
OIDC_COOKIE = "faultline_oidc"
LIFETIME = timedelta(hours=12)
