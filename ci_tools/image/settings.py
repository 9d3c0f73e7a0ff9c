"""What the caller's environment variables say about engine, base image and certificates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ci_tools.errors import UsageError

CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")


def find_ca_bundle(environ: Mapping[str, str]) -> Path | None:
    """Return the certificate bundle for pip inside a build, if this machine names one.

    `CA_BUNDLE` comes first and must exist; the variables of other tools count where they exist.

    Raises:
        UsageError: `CA_BUNDLE` names no file.
    """
    if named := environ.get("CA_BUNDLE"):
        if not Path(named).is_file():
            raise UsageError(f"CA_BUNDLE={named} is not a file", fix="correct or unset CA_BUNDLE")
        return Path(named).resolve()
    for key in CERTIFICATE_VARIABLES:
        if (value := environ.get(key)) and Path(value).is_file():
            return Path(value).resolve()
    return None


def parse_size(text: str) -> int:
    """Return bytes for `512MiB`, `4GiB`, `4g` or plain bytes.

    Raises:
        ValueError: It is none of these.
    """
    units = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
    lowered = text.strip().lower().removesuffix("ib")
    number = lowered.rstrip("kmg")
    unit = lowered[len(number) :]
    if not number.isdigit() or unit not in units or int(number) == 0:
        raise ValueError(f"{text!r} is not a size such as 4GiB")
    return int(number) * units[unit]
