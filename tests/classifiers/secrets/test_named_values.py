"""A value next to the name of a secret is removed in whatever syntax the two are written."""

import pytest

from classifiers.redaction import redact
from classifiers.secrets import named_values

NAMES = ("password", "DB_PASSWORD", "dbPassword", "api_key", "apiKey", "CLIENT_SECRET", "access_token")
VALUES = ("u7Qx2LmP9kRt4WzB8nVc", "Zk3+pQ9x/7LmT2vRw8YbN4cHs6J=")
PASSWORDS = ("Falcon-5863", "rocket_tiger77", "copper-river-harbor39")
SYNTAXES = (
    "{n}={v}",
    "{n}: {v}",
    "{n} = {v}",
    '{n}="{v}"',
    "'{n}': '{v}'",
    '"{n}":"{v}"',
    '\\"{n}\\": \\"{v}\\"',
    "{n} => {v}",
    ':{n} => "{v}"',
    "{n} -> {v}",
    '{n} := "{v}"',
    "['{n}'] = '{v}'",
    "('{n}', '{v}')",
    '["{n}", "{v}"]',
    "[{n}] => {v}",
    "--{n}={v}",
    "--{n} {v}",
    "-{n} '{v}'",
    "-D{n}={v}",
    "setenv {n} {v}",
    "ENV {n} {v}",
    "$env:{n} = '{v}'",
    "<{n}>{v}</{n}>",
    '<add key="{n}" value="{v}"/>',
    "<name>{n}</name><value>{v}</value>",
    "<key>{n}</key>\n<string>{v}</string>",
    "| {n} | {v} |",
    "│ {n} │ {v} │",
    "{n}\t{v}",
    "{n}    {v}",
    "{n} ........ {v}",
    '["{n}"]=>\n  string(12) "{v}"',
    "name: {n}\nvalue: {v}",
    '{"Key":"{n}","Value":"{v}"}',
    '{"field":"{n}","string":"{v}"}',
    '{"value":"{v}","name":"{n}"}',
    "Cfg({n}='{v}', x=1)",
    "Cfg{{n}={v}, x=1}",
    'Cfg { {n}: "{v}" }',
    '{n}: Some("{v}")',
    "{n}=b'{v}'",
    "{n}: |\n  {v}",
    "getenv('{n}', '{v}')",
    "define('{n}', '{v}');",
    "set_{n}('{v}')",
    '#define {n} "{v}"',
    "const {n} = `{v}`;",
    "(Pdb) p cfg.{n}\n'{v}'",
    "WHERE {n} = '{v}'",
    "({n}) VALUES ('{v}')",
    "{n} == '{v}'",
    "{n} is {v}",
    "{n} '{v}'",
    "?{n}={v}&x=1",
    "%22{n}%22%3A%22{v}%22",
    "{n}\x1b[0m: \x1b[33m{v}\x1b[0m",
    "invalid {n} '{v}'",
)


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_a_value_next_to_its_name_is_removed(syntax: str) -> None:
    left = []
    for name in NAMES:
        for value in (*VALUES, *(PASSWORDS if "assword" in name.lower() else ())):
            text = syntax.replace("{n}", name).replace("{v}", value)
            if value in redact(text) or redact(redact(text)) != redact(text):
                left.append(text)
    assert left == []


@pytest.mark.parametrize(
    "line",
    [
        "Running pass: ConvertConv2dToLinalg2 (pass  fuse_attention_v2)",
        "num_pass=step_1000 backward_pass: 12.345ms forward_pass = 0.5s bypass: fp8_e4m3",
        "<password>required</password>",
        "| token  | 151645 |",
        "| password | required | yes |",
        "token is 151645, pad_token was <|endoftext|>",
        "('token', 'llama-tokenizer'), (\"password\", \"username\"), ['api_key', 'api_base']",
        "token_type ........ Llama3Tokenizer",
        "tokenizer_class    GPT2BPETokenizer",
        "secret\thf-token",
        "if token == 'step' and password != 'abc':",
        "psk=/etc/wpa pwd: /home/ana/run12",
        "sort_key=layers.0.weight loss_key: val/acc@5 key: model.layers.0.self_attn",
        "torch.onnx.export(model, keep_initializers_as_inputs=True, do_constant_folding=True, key='x1')",
    ],
)
def test_ordinary_values_next_to_such_names_stay(line: str) -> None:
    assert redact(line) is line


@pytest.mark.parametrize("between", ["StringValue=", "_content: ", "2=", "_main=", "->", "-> '"])
@pytest.mark.parametrize("name", ["password", "token", "credential", "credentials", "api_key"])
def test_what_stands_between_a_name_and_its_sign_is_read_in_each_way(name: str, between: str) -> None:
    value = "rocket!tiger77"  # not found by its shape
    assert value not in redact(f"{name}{between}{value}")


def test_a_word_after_the_name_of_a_key_is_rejected_before_the_rules_of_its_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a log of nothing but such names would take twice as long."""
    read: list[str] = []

    def recorded(value: str) -> bool:
        read.append(value)
        return True

    monkeypatch.setattr(named_values, "looks_like_token", recorded)
    monkeypatch.setattr(named_values, "is_key", recorded)
    redact("api_key\tfile\ttoken  names  --secret-key wandb-key " * 20)
    assert read == []
    redact("api_key  u7Qx2LmP9kRt4WzB8nVc")
    assert set(read) == {"u7Qx2LmP9kRt4WzB8nVc"}


@pytest.mark.parametrize(
    "text",
    ["PASS rocket#tiger77", "220 ready\nPASS rocket#tiger77\n230 in", "< PASS a2 b3", "---> PASS rocket_tiger77\r\n"],
)
def test_the_password_of_a_dialogue_is_removed(text: str) -> None:
    assert "tiger" not in redact(text)
    line = "< PASS step12"
    assert redact(line) is line


def test_both_values_of_a_change_are_removed_if_they_are_secrets() -> None:
    assert redact("password = 'rocket77' -> 'tiger1234' (forces replacement)").count("[redacted]") == 2
    assert redact('~ api_key = "none" -> "u7Qx2LmP9kRt4WzB8nVc" # set').endswith('"none" -> "[redacted]" # set')
    line = "password_policy = 'strong8' -> 'strong12', token = 'bos' -> 'eos'"
    assert redact(line) is line


@pytest.mark.parametrize("name", ["session_id", "secret-id", "login id", "token_id"])
def test_an_id_that_opens_a_session_is_a_secret(name: str) -> None:
    value = "tUwx2plueQbHfwB2xc3ZBYOKFXJA"
    assert value not in redact(f"{name}: {value}")
    line = f"upload_id={value} {{'id': '{value}'}}"
    assert redact(line) is line


@pytest.mark.parametrize(
    "text",
    [
        "your new passphrase will be {v}",
        "Das Passwort für etl lautet {v}",
        "Le mot de passe de root est {v}",
        "La contraseña de admin es {v}",
        "A senha do banco é {v}",
        "Пароль для root: {v}",
        "Hasło dla roota to {v}",
        "ORACLE_PWD_PROD={v}",
        "DB_PASS_PROD={v}",
        "DB_PASSWORD_PRODUCTION_EU={v}",
        "export PASSWORD='\\''{v}'\\''",
        "password='\"'\"'{v}'\"'\"'",
        'password = 0x5555697b2fe7 "{v}", port = 1',
        "**Password:** {v}",
        'variable "db_password" {{ default = "{v}" }}',
        '{{"passwords": ["{v}"]}}',
        "password: str = '{v}'",
        'getenv("DB_PASSWORD") = "{v}"',
        "the pass is {v}",
        "transport: pass : {v}",
    ],
)
@pytest.mark.parametrize("value", ["kestrel38y91X0w", "W4lrus7t1de5509"])
def test_further_notations_of_a_password_are_known(text: str, value: str) -> None:
    whole = text.replace("{v}", value).replace("{{", "{").replace("}}", "}")
    assert value not in redact(whole)


@pytest.mark.parametrize("value", ["Ab3x9,kd9Kx;Lm2pQ7", "tiger4!rock&4417xy", "Tr0ub4dor\\3xQ9"])
def test_a_password_is_removed_up_to_its_end(value: str) -> None:
    assert redact(f"password={value}") == "password=[redacted]"
    assert redact("password=rocket77,user=ana;x=1&y=2") == "password=[redacted],user=ana;x=1&y=2"
    assert redact("password: rocket77, retry 3") == "password: [redacted], retry 3"


def test_a_password_of_letters_and_signs_is_removed_in_prose_and_in_sql() -> None:
    assert redact("temporary password for ana is hWqTbX!RmKeZ#").endswith("is [redacted]")
    assert "hWqTbX" not in redact("ALTER ROLE ana ENCRYPTED PASSWORD 'hWqTbX!RmKeZ#';")


@pytest.mark.parametrize(
    "line",
    [
        "token_url=https://login.example/oauth2/token scope=openid",
        "password = var.db_password",
        'restic backup --password-command "pass show restic" /data',
        "password_encryption=scram-sha-256 ssl=on",
        '__author__ = "Ana Lopez <ana@example.org>"',
        "num_token=237363982 token_drop_rate=0.486",
        "desenhar: figura-2.png",
        "Your token has been saved to /home/ana/.cache/huggingface/token",
        "inductor: fx graph cache miss for key fbhtl3lt6qdrreda4o7f4be2dwiten4gdhdulzg55umibn6yjehm",
        "pass: bf16_conv2d",
    ],
)
def test_names_of_something_else_than_the_secret_stay(line: str) -> None:
    assert redact(line) is line
