"""Who may look. On this machine alone, whoever is on it; anywhere else, who signed in.

Sign-in is Streamlit's own, by OpenID Connect. It is set up in a file as Streamlit reads it, with a
section of ours that says whose sign-in counts: a provider vouches for who somebody is, not for
whether they may see this.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import tomllib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FILE", "NotSafe", "SignIn", "admitted", "exposed", "read", "require"]

FILE = Path(".streamlit/secrets.toml")
_WANTED = ("redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url")
_SHORTEST_SECRET = 32


class NotSafe(Exception):
    """Why the dashboard is not shown to others; `str()` is the line to show."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """A sign-in that was set up: the file it is in, and patterns of addresses that may look."""

    file: Path
    allow: tuple[str, ...]

    def allows(self, email: object, verified: object) -> bool:
        """An address that the provider says it did not verify is nobody's."""
        if not isinstance(email, str) or verified is False:
            return False
        known = email.strip().lower()
        return any(fnmatch.fnmatchcase(known, pattern.lower()) for pattern in self.allow)


def exposed(host: str) -> bool:
    """Whether others than this machine reach a server that listens there."""
    if host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def read(file: Path) -> SignIn:
    """The sign-in of a file. Raises NotSafe with what is missing in it."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise NotSafe(f"the sign-in in {file} cannot be read: {error}") from None
    auth = found.get("auth", {})
    missing = [name for name in _WANTED if not isinstance(auth.get(name), str) or not auth[name]]
    if missing:
        raise NotSafe(f"the section [auth] of {file} lacks {', '.join(missing)}")
    if len(auth["cookie_secret"]) < _SHORTEST_SECRET:
        raise NotSafe(
            f"cookie_secret in {file} has fewer than {_SHORTEST_SECRET} characters: "
            'make one with python -c "import secrets; print(secrets.token_hex(32))"'
        )
    allow = found.get("whilst", {}).get("allow")
    if not isinstance(allow, list) or not allow or not all(isinstance(a, str) for a in allow):
        raise NotSafe(
            f"{file} does not say whose sign-in counts: add a section [whilst] with "
            'allow = ["*@example.org"]'
        )
    return SignIn(file, tuple(allow))


_required: SignIn | None = None


def require(sign_in: SignIn | None) -> None:
    """Show the dashboard to none but these from now on; None: to whoever reaches it."""
    global _required
    _required = sign_in


def admitted() -> bool:
    """Whether the viewer of this page may look; who may not is told what to do."""
    if _required is None:
        return True
    import streamlit as st

    from dashboard.live import show
    from dashboard.scope import empty

    if not st.user.is_logged_in:
        show(
            "sign-in", empty("Sign in to see the dashboard.", "Your organisation's sign-in opens.")
        )
        st.button("Sign in", type="primary", on_click=st.login)
        return False
    if not _required.allows(st.user.get("email"), st.user.get("email_verified")):
        who = str(st.user.get("email") or "this account")
        show(
            "sign-in",
            empty(f"{who} may not see this dashboard.", "Whoever runs it can add you to `allow`."),
        )
        st.button("Sign out", on_click=st.logout)
        return False
    with st.sidebar:
        st.text(str(st.user.get("email")))
        st.button("Sign out", on_click=st.logout)
    return True
