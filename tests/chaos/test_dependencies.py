"""What can be said of dependencies without asking anybody: they fit together, and are pinned.

Whether one of them has a known weakness only a data base elsewhere can tell: `pip-audit -r
constraints.txt`, where there is a way to it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[\w.+!-]+)(?P<when> ; .+)?")


def test_what_is_installed_fits_together() -> None:
    command = [sys.executable, "-m", "uv", "--offline", "pip", "check", "--python", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_everything_is_pinned_by_version_alone() -> None:
    pins = [PIN.fullmatch(line) for line in (ROOT / "constraints.txt").read_text().splitlines()]
    assert all(pins), "a line is no pin: no hosts, no paths, no ranges"
    names = {_name(pin["name"]) for pin in pins if pin}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in chain(project["dependencies"], *project["optional-dependencies"].values()):
        found = re.match(r"[\w.-]+", requirement)
        assert found is not None
        assert _name(found[0]) in names, f"{requirement} is not pinned: make pins"


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()
