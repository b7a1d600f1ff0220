"""Keys and certificates for tests that speak TLS, made by the command line tool that every Debian has."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_DAYS = ("-days", "2")


@dataclass(frozen=True, slots=True)
class Papers:
    """A key and its certificate, in files."""

    key: Path
    certificate: Path


def self_signed(folder: Path, name: str, *, subject: str = "IP:127.0.0.1") -> Papers:
    """A certificate that vouches for itself: NAME.key, NAME.pem; ``subject`` as in ``subjectAltName``."""
    made = _papers(folder, name)
    _openssl(
        folder, "req", "-x509", *_NEW_KEY, *_DAYS, "-subj", f"/CN={name}", "-addext", f"subjectAltName={subject}",
        "-keyout", str(made.key), "-out", str(made.certificate),
    )  # fmt: skip
    return made


def make_authority(folder: Path, *names: str) -> Path:
    """An authority (ca.pem) and, signed by it, papers for 127.0.0.1 and localhost by each of ``names``."""
    authority = _papers(folder, "ca")
    _openssl(
        folder, "req", "-x509", *_NEW_KEY, *_DAYS, "-subj", "/CN=test-ca",
        "-keyout", str(authority.key), "-out", str(authority.certificate),
    )  # fmt: skip
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for name in names:
        _openssl(folder, "req", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        _openssl(
            folder, "x509", "-req", *_DAYS, "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-extfile", "names", "-out", f"{name}.pem",
        )  # fmt: skip
    return folder


def _papers(folder: Path, name: str) -> Papers:
    return Papers(folder / f"{name}.key", folder / f"{name}.pem")


def _openssl(folder: Path, *words: str) -> None:
    program = shutil.which("openssl")
    assert program is not None, "openssl is missing: .ci/setup installs it"
    subprocess.run((program, *words), cwd=folder, check=True, capture_output=True)
