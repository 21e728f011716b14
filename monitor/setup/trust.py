"""The certificate authorities this machine trusts, in the form Java reads.

A Java from a wheel brings a list of its own, which knows nothing of the authorities that were
added to the machine (a company's, say) and that pip and git use. Debian's own Java needs none of
this: it is kept in step with the machine.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

# The usual places, for a Python that was built to look elsewhere.
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


def authorities() -> list[bytes]:
    """DER certificates; empty where none is found. `SSL_CERT_FILE` names them, as for OpenSSL."""
    context = ssl.create_default_context()
    if not context.get_ca_certs(binary_form=True):
        for bundle in filter(lambda path: Path(path).is_file(), _BUNDLES):
            context.load_verify_locations(bundle)
            break
    return context.get_ca_certs(binary_form=True)


def java_trust_store(certificates: Sequence[bytes]) -> bytes:
    """A JKS key store of trusted certificates, under no password but the one all of them have."""
    head = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    body = head + b"".join(map(_entry, range(len(certificates)), certificates))
    # The format's own checksum: password, a fixed phrase, content. It guards against accidents.
    salt = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(salt + body).digest()


def _entry(number: int, certificate: bytes) -> bytes:
    trusted, no_date = 2, 0
    return (
        struct.pack(">I", trusted)
        + _text(f"authority-{number}")
        + struct.pack(">Q", no_date)
        + _text("X.509")
        + struct.pack(">I", len(certificate))
        + certificate
    )


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
