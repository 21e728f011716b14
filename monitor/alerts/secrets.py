"""Secrets by reference: `env:NAME` or `file:PATH`. The value is read when it is needed, and never
shown: what is stored, logged and printed is the reference."""

from __future__ import annotations

import base64
import binascii
import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from standardwebhooks.webhooks import Webhook

from monitor.alerts.errors import AlertError

_REFERENCE = re.compile(r"(env|file):(.+)", re.S)
_ENOUGH = 64 * 1024  # bytes of a file; a secret is shorter


def is_reference(text: str) -> bool:
    return _REFERENCE.fullmatch(text) is not None


def anchored(reference: str, folder: Path) -> str:
    """The reference with a relative path taken from the folder of the configuration."""
    kind, _, place = reference.partition(":")
    return reference if kind == "env" else f"file:{(folder / place).absolute()}"


def read(text: str) -> str:
    """The value of a reference; other text is its own value."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        return text
    kind, place = found.groups()
    if kind == "env":
        value = os.environ.get(place, "").strip()
        if not value:
            raise AlertError(f"the environment variable {place} is not set: set it to the secret")
        return value
    try:
        with open(place, "rb") as file:
            value = file.read(_ENOUGH).decode().strip()
    except OSError as error:
        raise AlertError(f"cannot read the secret in {place}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise AlertError(f"the secret in {place} is no text: write it as base64") from None
    if not value:
        raise AlertError(f"the secret file {place} is empty")
    return value


def shown_url(url: str) -> str:
    """The URL for people: its path and query may be secret (chat tools put theirs there)."""
    if is_reference(url):
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{'/…' if parts.path.strip('/') or parts.query else ''}"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs by Standard Webhooks with every secret it has: two while keys are rotated."""

    _keys: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, references: tuple[str, ...]) -> Signer:
        return cls(tuple(_key(reference) for reference in references))

    def headers(self, webhook_id: str, at: datetime, body: str) -> dict[str, str]:
        at = at.astimezone(UTC)  # `sign` takes the clock's face for UTC
        made = {"webhook-id": webhook_id, "webhook-timestamp": str(int(at.timestamp()))}
        if self._keys:
            signatures = (Webhook(key).sign(webhook_id, at, body) for key in self._keys)
            made["webhook-signature"] = " ".join(signatures)
        return made


def _key(reference: str) -> bytes:
    value = read(reference).removeprefix("whsec_")
    try:
        key = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not 24 <= len(key) <= 64:
        raise AlertError(
            f"the secret in {reference} is not 24 to 64 bytes in base64: "
            "make one with `openssl rand -base64 32`"
        )
    return key
