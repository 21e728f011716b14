"""`whilst init` makes a project that works, and overwrites nothing."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from monitor.setup import project
from monitor.setup.places import SetupError


def test_it_makes_rules_facts_and_configuration(tmp_path: Path) -> None:
    made = project.make(tmp_path / "a farm")
    names = {path.name for path in made}
    assert names == {"README.md", "facts.jsonl", "turbines.rules", "whilst.toml"}
    tomllib.loads((tmp_path / "a farm" / "whilst.toml").read_text())


def test_the_facts_hold_late_and_out_of_order_ones() -> None:
    facts = [json.loads(line) for line in (project.TEMPLATE / "facts.jsonl").open()]
    delay = {"wt7": 5}
    assert any(f["arrival"] - f["time"] > delay.get(f["args"][0], 2) for f in facts)
    assert [f["time"] for f in facts] != sorted(f["time"] for f in facts)
    assert [f["arrival"] for f in facts] == sorted(f["arrival"] for f in facts)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_it_refuses_to_overwrite(tmp_path: Path, kind: str) -> None:
    taken = tmp_path / "farm"
    mine = taken if kind == "file" else taken / "mine"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(SetupError, match="already"):
        project.make(taken)
    assert mine.read_text() == "mine"
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [mine]


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    assert project.make(tmp_path)
