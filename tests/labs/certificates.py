"""Certificates for tests, by openssl: an authority, and certificates that are good, expired or for another host."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.labs.need import need

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Authority:
    """A certificate authority; clients trust it by its file `certificate`."""

    folder: Path
    name: str

    @property
    def certificate(self) -> Path:
        """The file that clients trust."""
        return self.folder / f"{self.name}.pem"

    def issue(self, name: str, *, host: str = "IP:127.0.0.1", expired: bool = False) -> tuple[str, str]:
        """Write a certificate and its key; return both paths, for `load_cert_chain`.

        Args:
            name: of the files.
            host: `IP:address` or `DNS:name`.
            expired: it ended yesterday.
        """
        certificate, key, request = (str(self.folder / f"{name}.{kind}") for kind in ("crt", "key", "csr"))
        subject = ("-subj", f"/CN={name}", "-addext", f"subjectAltName={host}")
        _openssl("req", "-new", *_KEY, *subject, "-keyout", key, "-out", request)
        signer = ("-CA", str(self.certificate), "-CAkey", str(self.folder / f"{self.name}-key.pem"))
        days = "-1" if expired else "2"
        _openssl(
            *("x509", "-req", "-in", request, *signer, "-CAcreateserial", "-copy_extensions", "copy"),
            *("-days", days, "-out", certificate),
        )
        return certificate, key


def authority(folder: Path, name: str = "authority") -> Authority:
    """Create an authority with its files in a folder."""
    need("openssl")
    made = Authority(folder, name)
    keys = ("-keyout", str(folder / f"{name}-key.pem"), "-out", str(made.certificate))
    _openssl("req", "-x509", *_KEY, "-subj", f"/CN={name}", "-days", "9", *keys)
    return made


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=30)
