"""The names of secrets that `named_values` looks for, in lower case, and what each says about its value."""

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
        "senha=",
        "senha:",
        "wachtwoord",
    ),
    *("parola=", "parola:", "losenord", "heslo=", "heslo:", "haslo=", "haslo:"),
)
_SHORT: Final = ("pwd", "pswd", "pass", "_pw", "-pw", "pw=", "pw:", 'pw"', "pw'", "psk")
_OF_ACCOUNTS: Final = ("bindpw", "rootpw", "dbpw", "userpw", "adminpw", "authtok")
_TOKENS: Final = ("token", "credential", "creds", "_auth", "auth=", "auth:", 'auth"', "auth'", "_pat=", "_pat:")
_KEYS: Final = tuple(
    f"{first}{sign}key"
    for first, signs in (
        *(("api", ("_", "", "-", " ")), ("private", ("_", "-", "", " ")), ("access", ("_", "-", "", " "))),
        *(("account", ("_", "-", "", ".")), ("auth", ("_", "-", "")), ("signing", ("_", "-", " "))),
        *(("encryption", ("_", "-", " ")), ("hmac", ("_", "-", " ")), ("aes", ("_", "-", " "))),
        *(("master", ("_", "-")), ("license", ("_", "-")), ("app", ("_", "-")), ("application", ("_", "-"))),
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
