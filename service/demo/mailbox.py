"""The mails of the demo: files in its folder, so that nothing is sent and people can read what would have been."""

from dataclasses import dataclass, field
from pathlib import Path

# Without a message type, so that only those who subscribe to the report get mail.
_SETTINGS = """public_url = "{address}"
[[endpoint]]
name = "mail"
kind = "folder"
path = "{folder}"
route = [{{ type = [] }}]
"""


@dataclass(slots=True)
class Mailbox:
    """The folder of the mails, and the delivery file that names it."""

    folder: Path
    settings: Path
    _known: set[Path] = field(default_factory=set)

    def arrived(self) -> list[Path]:
        """The mails that were written since the last call, oldest first."""
        found = sorted(set(self.folder.glob("*.eml")) - self._known)
        self._known.update(found)
        return found


def create(folder: Path, address: str) -> Mailbox:
    """Write the delivery file of a demo.

    Args:
        folder: the folder of the demo.
        address: the public address of its pages, for links in mails.
    """
    mails = Mailbox(folder / "mail", folder / "delivery.toml")
    mails.folder.mkdir()
    quoted = str(mails.folder).replace("\\", "\\\\").replace('"', '\\"')
    mails.settings.write_text(_SETTINGS.format(address=address, folder=quoted), encoding="utf-8")
    return mails
