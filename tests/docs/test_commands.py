"""Every command that a page shows is run, and prints what the page says it prints.

The blocks of a page run in order in one folder, which holds the examples. A line `…` stands for any
lines, `…` within a line for any text. A command without output under it must only succeed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ALL, ROOT, Block, Command

_SERVICES = {"spark": r"whilst (run|demo)\b", "postgres": r"whilst (run|sql|db|alerts)\b"}


def _parameters() -> list[object]:
    found = []
    for page, blocks in ALL:
        run = [b for b in blocks if b.language == "console" and b.not_run is None]
        if not run:
            continue
        text = "\n".join(c.text for b in run for c in b.commands)
        marks = [getattr(pytest.mark, s) for s, sign in _SERVICES.items() if re.search(sign, text)]
        found.append(pytest.param(blocks, id=str(page.relative_to(ROOT)), marks=marks))
    return found


@pytest.mark.parametrize("blocks", _parameters())
def test_the_commands_of_a_page(blocks: list[Block], tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for block in blocks:
        if block.title is not None:
            (tmp_path / block.title).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.title).write_text(block.text)
        if block.language == "console" and block.not_run is None:
            assert block.commands, f"{block.page}:{block.line}: no line starts with `$ `"
            *before, last = block.commands
            for command in before:
                _run(command, tmp_path, f"{block.page}:{block.line}", 0)
            _run(last, tmp_path, f"{block.page}:{block.line}", block.code)


def _run(command: Command, folder: Path, place: str, code: int) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WHILST_")} | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "TERM": "dumb",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command.text],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == code, f"{place}: $ {command.text}\n{done.stdout}"
    shown = "\n".join(line.rstrip() for line in command.shown).strip("\n")
    if shown:
        said = "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip("\n")
        assert _alike(shown, said), f"{place}: $ {command.text}\n--- shown\n{shown}\n--- is\n{said}"


def _alike(shown: str, said: str) -> bool:
    pattern = re.escape(shown).replace("…", ".*?")
    pattern = re.sub(r"(^|\\\n)\.\*\?(?=\\\n|$)", r"\1(?s:.*?)", pattern)
    return re.fullmatch(pattern, said) is not None


@pytest.mark.parametrize(
    ("shown", "said", "alike"),
    [
        ("a\nb", "a\nb", True),
        ("a\nb", "a\nc", False),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a\n…", "a\nb\nc", True),
        ("took … s", "took 1.5 s", True),
        ("took … s", "took 1\n5 s", False),
        ("a.c", "abc", False),
    ],
)
def test_what_an_ellipsis_stands_for(shown: str, said: str, alike: bool) -> None:
    assert _alike(shown, said) is alike
