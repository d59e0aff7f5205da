"""Certificates for tests, made by `openssl`: an authority, a broker's and a client's, each as PEM files."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.components import require_component

KEY_PASSWORD = "the key's password"
NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"
OTHER_NAMES = "subjectAltName=DNS:somewhere.else"


@dataclass(frozen=True)
class Certificates:
    directory: Path

    @property
    def authority(self) -> Path:
        return self.directory / "ca.pem"

    def chain(self, name: str) -> Path:
        return self.directory / f"{name}.pem"

    def key(self, name: str) -> Path:
        return self.directory / f"{name}.key"

    def both(self, name: str) -> Path:
        """Key and certificate in one file, as a keystore of type PEM has them."""
        path = self.directory / f"{name}-store.pem"
        path.write_text(self.key(name).read_text() + self.chain(name).read_text())
        return path


def make(directory: Path) -> Certificates:
    """`broker` is at localhost, `elsewhere` is not; `client` shows who it is; the key of `locked` has a password.
    `stranger` is another authority, which signed nothing here."""
    require_component(shutil.which("openssl") is not None, "openssl", "install the package openssl")
    directory.mkdir(parents=True, exist_ok=True)
    made = Certificates(directory)
    for authority in ("ca", "stranger"):
        _openssl(
            directory, "req", "-x509", *_new_key(authority), "-subj", f"/CN={authority}", "-out", f"{authority}.pem"
        )
    for name, extension in (("broker", NAMES), ("elsewhere", OTHER_NAMES), ("client", NAMES), ("locked", NAMES)):
        _sign(directory, name, extension)
    _openssl(
        directory, "pkcs8", "-topk8", "-in", "locked.key", "-out", "locked.enc", "-passout", f"pass:{KEY_PASSWORD}"
    )
    (directory / "locked.enc").rename(directory / "locked.key")
    return made


def _sign(directory: Path, name: str, extension: str) -> None:
    (directory / f"{name}.ext").write_text(extension)
    _openssl(directory, "req", *_new_key(name), "-subj", f"/CN={name}", "-out", f"{name}.csr")
    _openssl(
        directory,
        "x509",
        "-req",
        *("-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
        *("-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.pem"),
    )


def _new_key(name: str) -> tuple[str, ...]:
    return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key"


def _openssl(directory: Path, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=directory, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
