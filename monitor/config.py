"""One meaning for a setting, wherever it stands: flag, environment, TOML file, in that order.

`--trigger 5s`, `WHILST_TRIGGER=5s` and `trigger = "5s"` below `[run]` in `whilst.toml` say the
same. A file is looked for as `whilst.toml` in the current folder, or named by `--config`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from resolution.errors import WhilstError
from resolution.facts import RejectedEvent, time_point
from resolution.program import MILLISECONDS

FILE = Path("whilst.toml")


class ConfigError(WhilstError):
    """A setting that is not understood, and where it stands."""


def settings_of(file: Path | None, command: str, known: set[str]) -> dict[str, Any]:
    """What a TOML file says about a command, with `-` as `_` in the names of its settings."""
    path, table = _table(file, command)
    found = {name.replace("-", "_"): value for name, value in table.items()}
    if wrong := sorted(found.keys() - known):
        raise ConfigError(
            f"{path}: [{command}] knows no {wrong[0]!r}; it knows {', '.join(sorted(known))}"
        )
    return found


def store_of(file: Path | None) -> str | None:
    """The store that a run with this configuration writes: others read the same one."""
    path, table = _table(file, "run")
    store = table.get("store")
    if store is not None and not isinstance(store, str):
        raise ConfigError(f"{path}: [run] store must be a text, postgresql://user@host/database")
    return store


def _table(file: Path | None, command: str) -> tuple[Path, dict[str, Any]]:
    path = FILE if file is None else file
    if file is None and not path.exists():
        return path, {}
    try:
        tables = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    table = tables.get(command, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [{command}] must be a table of settings")
    return path, table


def milliseconds(text: str, what: str) -> int:
    """A duration such as 500ms, 1s, 10m. Raises ConfigError."""
    found = re.fullmatch(r"\s*(\d+)\s*(ms|s|m|h|d|w)\s*", text)
    if found is None:
        raise ConfigError(f"{what} takes a duration such as 500ms, 1s or 10m, not {text!r}")
    return int(found[1]) * MILLISECONDS[found[2]]


def point(text: str, unit: int, what: str) -> int:
    """A time point: a number, or an ISO 8601 instant. Raises ConfigError."""
    try:
        return time_point(int(text) if re.fullmatch(r"-?\d+", text) else text, unit, what)
    except RejectedEvent as error:
        raise ConfigError(
            f"{error}; write a time point such as 4, or an instant such as 2026-01-01T00:00:00Z"
        ) from None


def pairs(texts: list[str], what: str) -> dict[str, str]:
    """KEY=VALUE, several times. Raises ConfigError."""
    found: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise ConfigError(f"{what} takes KEY=VALUE, not {text!r}")
        found[key.strip()] = value.strip()
    return found
