"""The names of secrets that `named_values` looks for, in lower case, and what is said of them and of their values."""

import re
from typing import Final

# What a name of nothing but "key" ends with: its value has to look like one.
BARE_KEYS: Final = frozenset({"_key", "-key", "key=", "key:", 'key"', "key'"})
_PASSWORDS_OF_WORDS: Final = (
    *("password", "passwd", "passphrase", "passcode", "pass_phrase", "pass-phrase", "pwd=", "sshpass=", "securestring"),
    # German, French, Spanish, Portuguese, Dutch, Italian, Swedish, Czech and Polish.
    *(
        "passwort",
        "kennwort",
        "mot de passe",
        "mot_de_passe",
        "motdepasse",
        "contrase",
        "a senha",
        "senha=",
        "senha:",
        "wachtwoord",
    ),
    *("parola", "losenord", "heslo", "haslo", "salasana", "adgangskode"),
    *("pass_word", "pass-word", "pass phrase", "passwrd", "psswd", "p@ssword"),
)
_SHORT: Final = ("pwd", "pswd", "pass", "_pw", "-pw", "pw=", "pw:", 'pw"', "pw'", "psk", "psw=", "psw:", "p/w:")
_OF_ACCOUNTS: Final = ("bindpw", "rootpw", "dbpw", "userpw", "adminpw", "authtok")
_TOKENS: Final = (
    "token",
    "credential",
    "creds",
    "_auth",
    "auth=",
    "auth:",
    'auth"',
    "auth'",
    "_pat=",
    "_pat:",
    '_pat"',
    "_pat'",
)
_KEYS: Final = tuple(
    f"{first}{sign}key"
    for first, signs in (
        *(("api", ("_", "", "-", " ")), ("private", ("_", "-", "", " ")), ("access", ("_", "-", "", " "))),
        *(("account", ("_", "-", "", ".", " ")), ("auth", ("_", "-", "")), ("signing", ("_", "-", " "))),
        *(("encryption", ("_", "-", " ")), ("hmac", ("_", "-", " ")), ("aes", ("_", "-", " "))),
        *(
            ("master", ("_", "-", " ")),
            ("secret", (" ",)),
            ("storage", ("_", "-")),
            ("pre-shared", ("-",)),
            ("license", ("_", "-")),
            ("app", ("_", "-")),
            ("application", ("_", "-")),
        ),
        *(("integration", ("_", "-")), ("wandb", ("_", "-")), ("subscription", ("-",))),
    )
    for sign in signs
)
# Name -> whether a value of letters alone is a secret too.
NAMES: Final[dict[str, bool]] = {
    **dict.fromkeys(_PASSWORDS_OF_WORDS, True),
    **dict.fromkeys((*_OF_ACCOUNTS, *_SHORT, "secret", "authenticate", *_TOKENS, *_KEYS, *sorted(BARE_KEYS)), False),
}
PASSWORDS: Final = frozenset({*_PASSWORDS_OF_WORDS, *_SHORT, *_OF_ACCOUNTS})
# Their values have at least `values.TOKEN_LEAST` characters.
LONG: Final = frozenset(_TOKENS)
# What a name ends with that is one of something else than the secret, such as `password_policy`.
_HARMLESS_WORDS: Final = (
    r"polic(?:y|ies)|required|less|files?|paths?|dir|name|ref|type|enabled|disabled|length|len|size|reset|store"
    r"|urls?|uris?|endpoints?|hosts?|port|commands?|cmd|script|at|on|date|time\w*|changed|updated|created|expires|since|by|last"
    r"|attempts?|retries|errors?|status|result|valid\w*|check\w*|scor\w+|algo\w*|scheme|encoder|hasher|backend|service|label|encryption|method"
    r"|title|message|msg|regex|pattern|chars?|min|max|issuer|audience|scopes?|budget|rate|limit|usage|used|total|strength"
    r"|provider|class|version|expir(?:y|es|ed|ation)|ttl|age|count|hint|accessor|field|prompt|manager|mode|helper|rules?|format|stdin|fd|env"
)
HARMLESS_NAME: Final = re.compile(
    rf"(?i)(?:.*[_.-]|s)?(?:{_HARMLESS_WORDS})\Z|.*(?-i:[a-z](?:Name|Ref|File|Path|Type|Class))\Z"
)
# password for user ana is ...: what is said of a name, up to a colon, "is" or "to"
_BE: Final = "(?:is|was|are|will be|shall be|has been|became)"
# The same in German, French, Spanish, Portuguese, Italian, Dutch and Polish.
_IS: Final = f"(?:{_BE}(?: now)?|equals|reads|lautet|ist|est|es|\u00e9|\u00e8|\u00e0|jest|to)"
_OF: Final = "(?:for|of|from|f\u00fcr|fuer|von|pour|de|du|del|para|do|da|per|di|voor|van|dla)"
PROSE: Final = (
    rf"[ \t]{{1,3}}(?i:(?:{_BE} )?(?:changed|updated|rotated|reset) from(?=[ \t])"
    rf"|(?:{_BE} )?(?:(?:generated|created|set|reset|changed|updated) )?{_OF} "
    r"(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|[^\n:=]{1,80}?|[a-z+]{2,12}://[^\s]{1,200}?)"
    rf"(?::|=(?=[ \t])| {_IS}:?)(?=\s)"
    rf"|(?:(?:{_BE} )?(?:now )?(?:set|reset|changed|updated|rotated) to:?|to:?"
    rf"|{_IS}[ \t]?:?)(?=[ \t]))"
)
