"""Where Whilst keeps what it fetched."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class SetupError(Exception):
    """Something that has to be there is not: what, and what to do about it."""

    def __init__(self, what: str, do: str) -> None:
        super().__init__(f"{what}; {do}")
        self.what = what
        self.do = do


def in_clone() -> bool:
    """True where this code runs from a clone, not from an installed wheel."""
    return (ROOT / "pyproject.toml").is_file() and (ROOT / "constraints.txt").is_file()


def cache() -> Path:
    """The clone's own `.cache`, so that a clone leaves nothing elsewhere; else the user's cache."""
    if in_clone():
        return ROOT / ".cache"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "whilst"


def home() -> Path:
    """The folder of the embedded store and the checkpoints."""
    return Path(os.environ.get("WHILST_HOME") or ".whilst").absolute()


def setup_command() -> str:
    """What a person types to get the missing parts, the way they installed Whilst."""
    return f"make -C '{ROOT}' setup" if in_clone() else "whilst setup-jars"
