"""The user's name in the address of an endpoint."""

import re

OWNER = "{user}"
# The name of a user comes from an event or a form. Anything else could address another mailbox or channel.
PLAIN_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
