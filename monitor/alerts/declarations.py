"""`[[alert]]` in whilst.toml: what is told to whom. Read here, and checked whole before a run."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from monitor.alerts import addresses, secrets, templates
from monitor.alerts.errors import AlertError, Forbidden

EVENTS = ("confirmed", "pending", "refuted", "deadline")
FORMATS = ("standard", "slack")
ALLOWING = ("allow_private", "allow_link_local")

_DEADLINE = re.compile(r"deadline in less than (\S+)")
_DURATION = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = re.compile(
    r"webhook-.*|content-.*|host|connection|transfer-encoding|user-agent|upgrade|expect", re.I
)
_SECRET_HEADER = re.compile(r"auth|token|key|secret|cookie|password", re.I)


@dataclass(frozen=True, slots=True)
class Alert:
    """One declaration. References (`env:NAME`, `file:PATH`) stand for what is secret in it."""

    name: str
    url: str = field(repr=False)
    secret: str | None = None
    previous_secret: str | None = None
    program: str | None = None
    queries: tuple[str, ...] | None = None
    events: tuple[str, ...] = ("confirmed",)
    within: int | None = None
    """Event `deadline`: fewer time points left than this; or `within_ms`, a duration."""
    within_ms: int | None = None
    filter: Mapping[str, str | float] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    format: str = "standard"
    template: str | None = None
    allow_private: bool = False
    allow_link_local: bool = False
    redirects: int = 0
    """How many redirects (307, 308) are followed."""
    timeout: float = 10.0
    """Seconds for one attempt, from the name's resolution to the end of the reply."""
    concurrency: int = 32
    """Most requests at once."""
    ca_file: str | None = None

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(s for s in (self.secret, self.previous_secret) if s is not None)

    @property
    def allowed(self) -> frozenset[str]:
        """The settings that open addresses."""
        return frozenset(name for name in ALLOWING if getattr(self, name))


def from_file(path: Path) -> tuple[Alert, ...]:
    """The alerts of a configuration file; none where there is no such file."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AlertError(f"{path}: cannot be read: {error}") from None
    return declared(table, path)


def declared(table: Mapping[str, Any], path: Path) -> tuple[Alert, ...]:
    """The alerts of a configuration that was read from `path`."""
    listed = table.get("alert", [])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise AlertError(f"{path}: alerts are declared in tables `[[alert]]`, one for each")
    alerts = []
    for number, one in enumerate(listed, start=1):
        where = f"{path}, alert {one.get('name') or number!r}"
        try:
            alerts.append(_alert(one, path.parent))
        except AlertError as error:
            raise AlertError(f"{where}: {error}") from None
        if any(alerts[-1].name == other.name for other in alerts[:-1]):
            raise AlertError(f"{where}: another alert has that name already")
    return tuple(alerts)


def webhook(
    url: str, secret: str | None, *, program: str, allow_private: bool = False
) -> tuple[Alert, ...]:
    """The alert of `--webhook URL --webhook-secret env:NAME|file:PATH`: all that is confirmed."""
    if secret is not None and not secrets.is_reference(secret):
        raise AlertError(
            "--webhook-secret takes env:NAME or file:PATH, not the secret itself: "
            "everybody on this machine can read a command line"
        )
    try:
        return (
            _alert(
                {
                    "name": f"webhook of {program}",
                    "program": program,
                    "allow_private": allow_private,
                    "url": url,
                    **_split("secret", secret),
                },
                Path(),
            ),
        )
    except AlertError as error:
        said = str(error).replace("secret_env or secret_file", "--webhook-secret env:NAME")
        said = said.replace("allow_private = true", "--webhook-allow-private")
        raise AlertError(f"--webhook: {said}") from None


def _split(key: str, reference: str | None) -> dict[str, str]:
    if reference is None:
        return {}
    kind, _, place = reference.partition(":")
    return {f"{key}_{kind}": place}


# --- one table ---------------------------------------------------------------------------------

_KEYS = {
    **dict.fromkeys(("name", "program", "url", "url_env", "url_file", "format", "template"), str),
    **dict.fromkeys(("secret_env", "secret_file", "ca_file", "timeout"), str),
    **dict.fromkeys(("previous_secret_env", "previous_secret_file"), str),
    **dict.fromkeys(("queries", "events"), list),
    **dict.fromkeys(("filter", "headers"), dict),
    **dict.fromkeys(("redirects", "concurrency"), int),
    **dict.fromkeys(ALLOWING, bool),
}
_KINDS = {str: "text", list: "a list", dict: "a table", int: "a number", bool: "true or false"}


def _alert(table: Mapping[str, Any], folder: Path) -> Alert:
    for key, value in table.items():
        if key in ("secret", "previous_secret"):
            raise AlertError(f"no secret stands in this file: write {key}_env or {key}_file")
        if key not in _KEYS:
            raise AlertError(f"there is no setting `{key}`; there are {', '.join(_KEYS)}")
        kind = _KEYS[key]
        if type(value) is not kind:
            raise AlertError(f"`{key}` takes {_KINDS[kind]}")
    name = table.get("name", "")
    if not name.strip():
        raise AlertError("it needs a name")
    form = table.get("format", "standard")
    if form not in FORMATS:
        raise AlertError(f"`format` is one of {', '.join(FORMATS)}")
    template = table.get("template")
    if template is not None:
        if form == "standard":
            raise AlertError('a template goes with format = "slack"')
        templates.check(template)
    secret = _referred(table, "secret", folder)
    if form == "standard" and secret is None:
        raise AlertError("it needs a secret to sign with: name it in secret_env or secret_file")
    events, within, within_ms = _events(table.get("events", ["confirmed"]))
    allowing: dict[str, bool] = {name: table.get(name, False) for name in ALLOWING}
    ca_file = table.get("ca_file")
    return Alert(
        name=name.strip(),
        url=_url(table, folder, {name for name in ALLOWING if allowing[name]}),
        secret=secret,
        previous_secret=_referred(table, "previous_secret", folder),
        program=table.get("program"),
        queries=_names(table.get("queries")),
        events=events,
        within=within,
        within_ms=within_ms,
        filter=_filter(table.get("filter", {})),
        headers=_headers(table.get("headers", {}), folder),
        format=form,
        template=template,
        **allowing,
        redirects=_between(table, "redirects", 0, 0, 10),
        timeout=_timeout(table.get("timeout", "10s")),
        concurrency=_between(table, "concurrency", 32, 1, 256),
        ca_file=None if ca_file is None else str((folder / ca_file).absolute()),
    )


def _referred(table: Mapping[str, Any], key: str, folder: Path) -> str | None:
    found = [
        f"{kind}:{table[f'{key}_{kind}']}" for kind in ("env", "file") if f"{key}_{kind}" in table
    ]
    if len(found) > 1:
        raise AlertError(f"give {key}_env or {key}_file, not both")
    if found and not secrets.is_reference(found[0]):
        raise AlertError(f"{key}_env or {key}_file is empty")
    return secrets.anchored(found[0], folder) if found else None


def _url(table: Mapping[str, Any], folder: Path, allowed: Set[str]) -> str:
    reference = _referred(table, "url", folder)
    literal: str | None = table.get("url")
    if (reference is None) == (literal is None):
        raise AlertError("it needs one of url, url_env and url_file")
    if reference is not None:
        return reference
    assert literal is not None
    if secrets.is_reference(literal):
        return secrets.anchored(literal, folder)
    parts = checked_url(literal)
    try:
        addresses.check_host(parts.hostname or "", allowed)
    except Forbidden as error:
        raise AlertError(str(error)) from None
    return literal


def checked_url(url: str) -> SplitResult:
    """The parts of a URL that alerts may go to; the URL itself is not shown."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise AlertError("the URL cannot be read") from None
    if parts.scheme not in ("http", "https"):
        raise AlertError("the URL has to begin with https:// or http://")
    if not parts.hostname:
        raise AlertError("the URL names no host")
    if addresses.is_misspelt(parts.hostname):
        raise AlertError("the host of the URL is no name, and no address in full: write 192.0.2.1")
    if parts.username is not None or parts.password is not None:
        raise AlertError("no password stands in a URL: send it in a header, from env:NAME")
    if any(c.isspace() or not c.isprintable() for c in url):
        raise AlertError("there is a space or a control character in the URL")
    return parts


def _names(listed: list[Any] | None) -> tuple[str, ...] | None:
    if listed is None:
        return None
    if not listed or not all(isinstance(one, str) and one for one in listed):
        raise AlertError("`queries` lists names of queries; leave it out for all of them")
    return tuple(dict.fromkeys(listed))


def _events(listed: list[Any]) -> tuple[tuple[str, ...], int | None, int | None]:
    events: dict[str, None] = {}
    within: int | None = None
    within_ms: int | None = None
    for one in listed:
        if isinstance(one, str) and one in EVENTS and one != "deadline":
            events[one] = None
            continue
        found = _DEADLINE.fullmatch(one) if isinstance(one, str) else None
        if found is None or "deadline" in events:
            raise AlertError(
                "`events` lists confirmed, pending, refuted, and one "
                "`deadline in less than 10m` (a duration, or a number of time points)"
            )
        events["deadline"] = None
        if found[1].isdecimal():
            within = int(found[1])
        else:
            within_ms = milliseconds(found[1])
        if not (within or within_ms):
            raise AlertError("`deadline in less than 0` never happens")
    if not events:
        raise AlertError("`events` is empty: leave it out for confirmed answers")
    return tuple(events), within, within_ms


def milliseconds(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise AlertError(f"{text!r} is no duration: write 500ms, 30s, 10m, 2h or 1d")
    return int(found[1]) * _MS[found[2]]


def _timeout(text: str) -> float:
    seconds = milliseconds(text) / 1000
    if not 0 < seconds <= 60:
        raise AlertError("`timeout` is at most 60s")
    return seconds


def _between(table: Mapping[str, Any], key: str, default: int, least: int, most: int) -> int:
    value: int = table.get(key, default)
    if not least <= value <= most:
        raise AlertError(f"`{key}` is a number from {least} to {most}")
    return value


def _filter(table: Mapping[str, Any]) -> dict[str, str | float]:
    made: dict[str, str | float] = {}
    for variable, value in table.items():
        if isinstance(value, bool):
            made[variable] = str(value).lower()  # in facts, true and false are names
        elif isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value)):
            made[variable] = value
        else:
            raise AlertError(f"`filter` gives each variable text or a number, not so `{variable}`")
    return made


def _headers(table: Mapping[str, Any], folder: Path) -> dict[str, str]:
    made = {}
    for name, value in table.items():
        if not _HEADER.fullmatch(name) or not isinstance(value, str) or not value.isprintable():
            raise AlertError("`headers` gives each header a line of text")
        if _OURS.fullmatch(name):
            raise AlertError(f"the header `{name}` is set by whilst")
        if secrets.is_reference(value):
            value = secrets.anchored(value, folder)
        elif _SECRET_HEADER.search(name):
            raise AlertError(f"the header `{name}` looks secret: give it as env:NAME or file:PATH")
        made[name] = value
    return made
