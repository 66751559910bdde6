"""Formats of secrets that are not of one service: tokens of the web, headers, addresses, and the flags of commands."""

from typing import Final

_QUOTE: Final = r"\\?[\"']"
ARGUMENT: Final = r"(?:\\?\"(?P<secret>[^\"\n]{1,4096})|'(?P<secret1>[^'\n]{1,4096})|(?P<secret2>[^\s\"']{4,4096}))"

_VARIABLE: Final = "(?i:passw(?:or)?d|passphrase|secret|token|credentials?|(?:api|access|private|auth)[._-]?key)"

# Marker (lower case) -> pattern that begins with the marker. The groups with `secret` in their name are removed.
GENERAL_FORMATS: Final[dict[str, str]] = {
    "eyj": r"(?P<secret>eyJ[\w-]{8,4096}+\.[\w-]{8,4096}(?:\.[\w-]{4,4096})?)",
    "bearer ": r"(?i:bearer) {1,4}(?P<secret>(?=[\w.~+/-]{0,4095}\d)[\w.~+/=-]{12,4096})",
    "authorization": rf"(?i:authorization)(?:{_QUOTE})?"
    rf"(?:[ \t]{{0,4}},?[ \t]{{0,4}}[bB]?{_QUOTE}(?i:basic|token|negotiate) {{1,4}}(?P<secret4>[^\s\"'\\,]{{6,4096}})"
    rf"|[ \t]{{0,4}}[:=][ \t]{{0,4}}(?:{_QUOTE})?"
    r"(?:(?i:digest) {1,4}(?P<secret2>(?:[\w-]{1,20}=(?:\\?\"[^\"\n]{0,300}\"|[\w/]{1,64}),? {0,4}){1,16})"
    r"|(?i:basic|bearer|token|digest|negotiate|splunk|aws4-hmac-sha256|[\w-]{0,16}key) {1,4}"
    r"(?P<secret>[^\s\"'\\,]{6,4096})"
    # With any other scheme, or none, a value without a digit is a word, as in `authorization: denied`.
    r"|(?:[A-Za-z][\w-]{1,31} {1,4})?+(?P<secret1>(?=[^\s\"'\\,\d]{0,255}+\d)[^\s\"'\\,]{6,4096})))",
    # A value of fewer than 8 characters is a preference, such as `theme=dark`; the age of a cookie is none.
    "cookie:": r"(?i:cookie):[ \t]{0,4}(?P<secret>(?=[^\r\n\"']{0,1024}(?<!-[Aa]ge)=\"?[^;\s\"']{8})"
    r"(?:[^\r\n\"']|(?<==)\"[^\"\r\n]{0,4096}\"(?=[;\s]|\Z)){8,4096})",
    "://": r"://(?!(?i:user(?:name)?:pass(?:word|wd)?@))"
    r"(?:(?P<secret3>[\w-]{16,256}):(?:x-oauth-basic|(?P<secret4>[0-9a-f]{32}))?@"
    r"|[^\s/@:\"'<>?#]{0,256}:(?P<secret>(?!x-oauth-basic@)[^\s/@\"'<>]{1,1024}(?:@[^\s/@\"'<>]{1,1024})?)@"
    r"|(?P<secret1>[^\s/@:\"'<>?#]{16,1024})@"
    r"|[^\s/@:\"'<>?#]{1,256}:(?P<secret2>(?!\d{1,5}/|x-oauth-basic@)[^\s@\"'<>]{1,1024})@(?=[\w.-]{1,255}[:/?\s\"']))",
    "?sig=": r"(?i)\?sig=(?P<secret>[^\s&\"']{8,1024})",
    "&sig=": r"(?i)&sig=(?P<secret>[^\s&\"']{8,1024})",
    "signature=": r"(?i)signature=(?P<secret>[0-9a-zA-Z%/+=_~-]{20,1024})",
    "pin=": r"(?i:pin)=[\"']?(?P<secret>\d{4,8})(?!\w)",
    "pin: ": r"PIN: {1,3}(?P<secret>\d{4,8})(?!\w)",
    # Of a mail client, after the number of its command.
    " login ": r"(?:(?<=[A-Za-z]\d)|(?<=[A-Za-z]\d\d)|(?<=[A-Za-z]\d{3})|(?<=[A-Za-z]\d{4})) LOGIN "
    rf"(?:\"[^\"\n]{{1,100}}\"|[^\s\"]{{1,100}}) {{1,2}}{ARGUMENT}",
    # The value before the name of a variable, in JSON and XML.
    '"value"': r"\"(?i:value)\"\s{0,4}:\s{0,4}\"(?P<secret>[^\"\n]{6,4096})\",\s{0,40}\"(?i:name|key)\"\s{0,4}:\s{0,4}"
    rf"\"[\w.-]{{0,60}}{_VARIABLE}\"",
    'value="': r"(?i:value)=\"(?P<secret>[^\"\n]{4,4096})\"\s{1,40}(?i:name|key|id)=\""
    rf"[\w.-]{{0,60}}{_VARIABLE}\"",
    "-----begin ": r"-----BEGIN (?:(?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----"
    r"(?P<secret>(?:[^-]|-(?!----)){1,65536})",
}
FLAGS: Final = (
    *("--password", "--passwd", "--token", "--api-key", "--api_key", "--apikey", "--secret", "--auth-token"),
    *("--access-key", "--secret-key", "--access_key", "--secret_key", "--pass"),
)
