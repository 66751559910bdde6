"""A secret below the line that names it is removed: after a prompt or a command, and in the column of a table."""

import json

import pytest

from classifiers.redaction import redact

HIDDEN = "Walrus-T1de4471"
PREFIX = "Mar  3 11:51:47 node7 login[713]: "


@pytest.mark.parametrize(
    "text",
    [
        f"Password:\n{HIDDEN}\nConnected to node7",
        f"[sudo] password for ana:\n{HIDDEN}",
        f"$ kubectl get secret pg -o jsonpath='{{.data.password}}' | base64 -d\n{HIDDEN}\n$ ls",
        f"vault kv get -field=password secret/db\n{HIDDEN}",
        f'(gdb) p cfg->password\n$7 = 0x555581897b59 "{HIDDEN}"',
        f"In [3]: cfg.password\nOut[3]: '{HIDDEN}'",
        f"$ openssl rand -base64 12\n{HIDDEN}\n",
        f"user,password,host\nana,{HIDDEN},db01\nbob,{HIDDEN},db02\n",
        f"name;pwd\nana;{HIDDEN}\n",
        f"USER       PASSWORD         HOST\nana      {HIDDEN}   db01\n",
        f"+------+----------+\n| user | password |\n+------+----------+\n| ana | {HIDDEN} |\n+------+----------+",
        f"chpasswd:\n  list: |\n    root:{HIDDEN}\n    ana:{HIDDEN}\n",
        f"chpasswd <<EOF\nroot:a1b2c3d4\nana:{HIDDEN}\nEOF",
    ],
)
@pytest.mark.parametrize("wrap", ["{}", PREFIX + "{}", "json"])
def test_a_secret_below_its_name_is_removed(text: str, wrap: str) -> None:
    whole = json.dumps({"level": "info", "message": text}) if wrap == "json" else wrap.replace("{}", text)
    cleaned = redact(whole)
    assert HIDDEN not in cleaned
    assert redact(cleaned) == cleaned
    assert cleaned.count("\n") == whole.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "Password:\nConnected to node7",
        "password:\n  min_length: 12\n",
        "$ ls secrets\ndb-password.txt\n",
        "# token config\nfoo_bar1=x\n",
        ">>> tokenize('a')\n'9d71491b50023b06fc76928e6eddb952'\n",
        "id,token,count\n1,hello2,33\n2,world5,12\n",
        "NAME   SECRETS   AGE\ndefault   1    3d\n",
        "| token | id |\n| <|endoftext|> | 50256 |\n",
        "user,password\nnone,required\n",
    ],
)
def test_ordinary_lines_below_such_names_stay(text: str) -> None:
    assert redact(text) is text


def test_a_table_ends_with_the_first_line_of_another_form() -> None:
    text = f"user,password\nana,{HIDDEN}\ndone in 3 s\nbob,pear7apple9tree\n"
    assert redact(text) == "user,password\nana,[redacted]\ndone in 3 s\nbob,pear7apple9tree\n"
