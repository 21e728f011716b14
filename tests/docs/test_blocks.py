"""What the pages show is true in kind: programs have no mistakes, and nothing escapes the tests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from resolution.checks import check
from resolution.errors import report
from resolution.parser import parse_partial
from resolution.printer import format
from tests.docs.pages import ALL, Block, name, pages

# `text` is for shapes and messages; commands in it would escape the tests, see below.
_LANGUAGES = {
    "console",
    "rules",
    "json",
    "sql",
    "toml",
    "text",
    "http",
    "mermaid",
    "python",
    "csv",
    "yaml",
}

BLOCKS = [block for _, found in ALL for block in found]
place = pytest.mark.parametrize("block", BLOCKS, ids=lambda b: f"{b.page}:{b.line}")


@place
def test_a_block_says_what_it_is(block: Block) -> None:
    assert block.language in _LANGUAGES
    if block.language != "console":
        assert not re.search(r"^(\$ |whilst |make )", block.text, re.MULTILINE)


@place
def test_what_is_not_run_has_a_reason(block: Block) -> None:
    if block.not_run is not None:
        assert block.language == "console"
        assert len(block.not_run.split()) >= 3


def test_few_commands_are_not_run() -> None:
    """A new marker is a decision: it is counted here."""
    unrun = [b for b in BLOCKS if b.not_run is not None]
    texts = "\n".join(page.read_text() for page in pages())
    assert len(unrun) == len(re.findall(r"^<!-- not run", texts, re.MULTILINE))
    assert len(unrun) <= 12


def test_there_is_something_to_run() -> None:
    assert sum(len(b.commands) for b in BLOCKS if b.language == "console" and not b.not_run) > 10


@pytest.mark.parametrize("page", pages(), ids=name)
def test_no_command_hides_in_an_indented_block(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert not [line for line in lines if re.match(r"( {4}|\t)(\$ |whilst |make )", line)]


@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if b.language == "rules"], ids=lambda b: f"{b.page}:{b.line}"
)
def test_a_program_has_no_mistake_and_the_one_layout(block: Block) -> None:
    tree, mistakes = parse_partial(block.text, f"{block.page}:{block.line}")
    found = (*mistakes, *check(tree))
    if block.title is not None and block.title.startswith("wrong"):
        assert found, "a program that is shown for its mistakes has none"
        return
    assert not found, report(found, tree.source)
    assert format(block.text) == block.text


@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if b.language == "json"], ids=lambda b: f"{b.page}:{b.line}"
)
def test_json_is_json(block: Block) -> None:
    for line in block.text.splitlines() if "\n}" not in block.text else [block.text]:
        json.loads(line)
