"""The pages of the documentation, and the fenced blocks in them.

A block may have one line of instruction right above it, which no reader sees:

    <!-- not run: REASON -->     commands that a test cannot run, and why
    <!-- exit 1 -->              the last command ends with this code

A block with a title, ```rules title="farm.rules", is also a file for the commands that follow it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"(?P<indent> *)(?P<ticks>```+)(?P<language>\w*)(?P<rest>.*)")
_TITLE = re.compile(r'title="([^"]+)"')
_NOT_RUN = re.compile(r"<!-- not run: *(.*?) *-->")
_EXIT = re.compile(r"<!-- exit (\d+) -->")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    title: str | None
    text: str
    not_run: str | None
    code: int

    @property
    def commands(self) -> list[Command]:
        found: list[Command] = []
        going_on = False
        for line in self.text.splitlines():
            if going_on:
                found[-1].text += "\n" + line
            elif line.startswith("$ "):
                found.append(Command(line[2:]))
            elif found:
                found[-1].shown.append(line)
            going_on = (going_on or line.startswith("$ ")) and line.endswith("\\")
        return found


@dataclass
class Command:
    text: str
    shown: list[str] = field(default_factory=list)


def pages() -> list[Path]:
    """All that a reader finds: the texts at the top, the examples, and the documentation."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("docs/**/*.md")]
    return sorted(found)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> Iterator[Block]:
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    above = ""
    for number, line in lines:
        opened = _FENCE.fullmatch(line)
        if opened is None:
            above = line.strip() or above
            continue
        inside: list[str] = []
        for _, within in lines:
            if within.strip() == opened["ticks"]:
                break
            inside.append(within.removeprefix(opened["indent"]))
        titled, unrun, code = (
            _TITLE.search(opened["rest"]),
            _NOT_RUN.fullmatch(above),
            _EXIT.fullmatch(above),
        )
        yield Block(
            name(page),
            number,
            opened["language"],
            titled[1] if titled else None,
            "\n".join(inside) + "\n",
            unrun[1] if unrun else None,
            int(code[1]) if code else 0,
        )
        above = ""


ALL = [(page, list(blocks(page))) for page in pages()]
