"""`whilst init` makes a project that works, and overwrites nothing."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from monitor.alerts.declarations import from_file
from monitor.cli import app
from monitor.config import settings_of
from monitor.setup import project
from monitor.setup.places import SetupError
from resolution.facts import Arrivals, read_event
from resolution.premises import premise_sets
from resolution.program import load
from resolution.reference import answers


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


def test_the_answers_are_those_that_its_readme_promises() -> None:
    program = load((project.TEMPLATE / "turbines.rules").read_text())
    lines = (project.TEMPLATE / "facts.jsonl").read_text().splitlines()
    arrivals = Arrivals.of((read_event(line, program) for line in lines), program.delays)
    premises = premise_sets(program, program.queries[0])

    def known(tau: int) -> dict[str, str]:
        triples = answers(premises, program.delays, arrivals.by(tau), tau)
        return {str(t.answer): "confirmed" if t.confirmed else "pending" for t in triples}

    assert [known(tau).get("Malf(wt2, 0)") for tau in (0, 1, 2)] == [
        "pending",
        "pending",
        "confirmed",
    ]
    assert [known(tau).get("Malf(wt7, 0)") for tau in (1, 4, 5)] == [
        "pending",
        "pending",
        "confirmed",
    ]
    assert [known(tau).get("Malf(wt5, 1)") for tau in (4, 5)] == ["pending", None]
    assert [str(fact.atom) for fact in arrivals.late] == ["Temp(wt5, high, 3)"]
    last = {str(t.answer): t for t in answers(premises, program.delays, arrivals.by(11), 11)}
    assert [str(atom) for atom in last["Malf(wt2, 9)"].hypotheses] == ["Temp(wt2, high, 11)"]


def _uncommented() -> str:
    """The template's configuration with every setting and the alert switched on."""
    text = (project.TEMPLATE / "whilst.toml").read_text()
    return re.sub(r"^# (?=\[\[|[a-z_-]+ = )", "", text, flags=re.MULTILINE)


def test_the_configuration_names_every_setting_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "whilst.toml").write_text(_uncommented())
    command = get_command(app).commands["run"]  # type: ignore[attr-defined]
    known = {one.name for one in command.params} - {"program_file", "config"}
    assert settings_of(tmp_path / "whilst.toml", "run", known).keys() == known


def test_what_the_configuration_says_is_the_default_is_so() -> None:
    said = tomllib.loads(_uncommented())["run"]
    command = get_command(app).commands["run"]  # type: ignore[attr-defined]
    defaults = {one.name.replace("_", "-"): one.default for one in command.params}
    for name in ("master", "trigger", "grace", "log-format", "once", "fresh"):
        assert said[name] == defaults[name], name


def test_the_configuration_has_an_alert_to_start_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER_SECRET", "whsec_" + "QUJD" * 8)
    (tmp_path / "whilst.toml").write_text(_uncommented())
    (alert,) = from_file(tmp_path / "whilst.toml")
    assert (alert.name, alert.queries, alert.filter) == ("pager", ("Malf",), {"X": "wt2"})
    assert alert.events == ("confirmed", "deadline")
