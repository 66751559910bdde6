"""Texts of jobs in messages for people: no mentions, no links and no markup can come from a log.

Receivers turn `@here`, `<!channel>`, `[text](address)` and addresses into mentions and links. Such texts are written so
that people can still read them and receivers cannot: `(at)here`, `‹!channel›`, `https[:]//example[.]com`.
"""

import re

from service.formatting import escape_invisible

_ONE_LINE = str.maketrans({"<": "‹", ">": "›", "\n": " ", "\t": " "})
_MENTION = re.compile(r"[@\uff20\ufe6b](?=\S)")
_MARKDOWN_LINK = re.compile(r"\](?=[(:])")
_SCHEME = re.compile(r"(?i)\b(mailto|tel|sms|callto|javascript|data|vbscript|file|slack|msteams|discord):(?=\S)")
# Receivers link names without a scheme too, if they end like a domain or an address follows.
_DOMAINS = "com|net|org|info|biz|io|ai|dev|app|co|me|xyz|top|site|online|link|click|shop|ru|cn|de|uk|eu|us|example"
_BARE = re.compile(rf"(?i)(?<=[a-z0-9-])\.(?=(?:{_DOMAINS})\b(?!\.[a-z0-9])|[a-z]{{2,24}}[/:?#]\S)")
_WWW = re.compile(r"(?i)\bwww\.")


def plain_text(text: str) -> str:
    """The text on one line, without anything that a receiver may turn into a mention, a link or markup."""
    one_line = str(escape_invisible(text.translate(_ONE_LINE)))
    unmentioned = _MARKDOWN_LINK.sub("] ", _MENTION.sub("(at)", one_line))
    unlinked = _SCHEME.sub(r"\1[:]", unmentioned.replace("://", "[:]//"))
    return _BARE.sub("[.]", _WWW.sub("www[.]", unlinked))
