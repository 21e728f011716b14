"""What can go wrong with alerts, said in one line that names the next step and holds no secret."""

from __future__ import annotations


class AlertError(Exception):
    """A declaration, a secret or a command that cannot be; `str()` is the line to show."""


class Forbidden(OSError):
    """An address that alerts may not go to. An OSError: so the next address of a name is tried."""
