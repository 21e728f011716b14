"""The VS Code extension names files that exist, and its grammar knows the words of the language."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from resolution.parser import parse
from resolution.program import MILLISECONDS
from tests.examples.cases import ALL

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "editors" / "vscode"
GRAMMAR = json.loads((FOLDER / "syntaxes" / "whilst.tmLanguage.json").read_text())
RULES = GRAMMAR["repository"]


def scopes(text: str) -> list[tuple[str, str]]:
    """What an editor does with a line: at each place, the first rule that matches."""
    order = [include["include"].removeprefix("#") for include in GRAMMAR["patterns"]]
    patterns = [(name, re.compile(RULES[name].get("match") or r'"(\\.|[^"])*"')) for name in order]
    found, at = [], 0
    while at < len(text):
        for name, pattern in patterns:
            matched = pattern.match(text, at)
            if matched and matched.end() > at:
                found.append((name, matched[0]))
                at = matched.end()
                break
        else:
            assert text[at].isspace(), f"no colour for {text[at:]!r}"
            at += 1
    return found


def test_the_files_it_names_are_there() -> None:
    offers = json.loads((FOLDER / "package.json").read_text())["contributes"]
    named = [
        offers["languages"][0]["configuration"],
        offers["grammars"][0]["path"],
        offers["snippets"][0]["path"],
    ]
    for name in named:
        json.loads((FOLDER / name).read_text())
    assert offers["grammars"][0]["scopeName"] == GRAMMAR["scopeName"]


def test_the_keywords_and_units_are_those_of_the_language() -> None:
    lark = (ROOT / "resolution" / "grammar.lark").read_text()
    keywords = set(re.findall(r'^[A-Z]+: "([a-z]+)"$', lark, re.MULTILINE))
    assert (
        set(re.findall(r"[a-z]+", RULES["declaration"]["match"].split(")")[0])) - {"b"} == keywords
    )
    assert set(RULES["duration"]["match"].split("(")[2].split(")")[0].split("|")) == set(
        MILLISECONDS
    )


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.folder.name)
def test_everything_in_a_program_has_a_colour(example: object) -> None:
    for line in example.rules.read_text().splitlines():
        scopes(line)


def test_colours() -> None:
    assert scopes('delay Temp(wt7, "n/a") = 4m.  % slow') == [
        ("declaration", "delay"),
        ("predicate", "Temp"),
        ("punctuation", "("),
        ("name", "wt7"),
        ("punctuation", ","),
        ("string", '"n/a"'),
        ("punctuation", ")"),
        ("comparison", "="),
        ("duration", "4m"),
        ("punctuation", "."),
        ("comment", "% slow"),
    ]
    assert scopes("A(X, T-1) <- delay(X, T), X >= 1.5.")[6:9] == [
        ("number", "1"),
        ("punctuation", ")"),
        ("arrow", "<-"),
    ]


def test_every_snippet_is_a_statement_once_filled() -> None:
    for name, snippet in json.loads((FOLDER / "snippets" / "whilst.json").read_text()).items():
        filled = re.sub(r"\$\{\d+:([^}]*)\}", r"\1", snippet["body"])
        if name == "Within":
            filled = f"A(X, T1) <- B(X, T1), B(X, T2), {filled}."
        assert len(parse(filled).statements) == 1
