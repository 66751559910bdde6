"""Own signatures for tests."""

from pathlib import Path

QUOTA = """
[[signature]]
id = "site.scratch-quota"
label = "Quota of /scratch exceeded"
side = "user"
cause = "USER.2"
role = "initiating"
action = "Delete old checkpoints in /scratch, or ask storage@example.org for a larger quota."
literals = ["scratch: quota exceeded"]
examples = ["scratch: quota exceeded for user ana (2.1T of 2.0T)"]
near_misses = ["scratch: quota checked, 1.2T of 2.0T"]
"""
LICENCE = """
[[signature]]
id = "site.licence-server"
label = "The licence server does not answer"
side = "system"
role = "initiating"
action = "Wait for the licence server; it restarts within ten minutes."
literals = ["licence server"]
pattern = '(?i)licence server .{1,40} (?:timed out|refused)'
examples = ["Licence server lic1:27000 timed out"]
near_misses = ["licence server lic1:27000 answered"]
"""


def write(folder: Path, *entries: str, name: str = "site.toml") -> Path:
    """Write a file of own signatures; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("version = 1\n" + "".join(entries), encoding="utf-8")
    return folder
