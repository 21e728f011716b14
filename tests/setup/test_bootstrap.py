"""What makes `make setup` install again, and what does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from monitor.setup import bootstrap


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(bootstrap.ROOT / name, tmp_path / name)
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "CONSTRAINTS", tmp_path / "constraints.txt")
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_linter_setting_does_not_install_again(clone: Path) -> None:
    before = bootstrap.fingerprint(["dev"])
    edit(clone / "pyproject.toml", "line-length = 100", "line-length = 99")
    assert bootstrap.fingerprint(["dev"]) == before


def test_another_dependency_pin_or_extra_does(clone: Path) -> None:
    seen = {bootstrap.fingerprint(["dev"]), bootstrap.fingerprint(["dev", "java"])}
    edit(clone / "constraints.txt", "lark==", "lark==9.")
    seen.add(bootstrap.fingerprint(["dev"]))
    edit(clone / "pyproject.toml", '"httpx"', '"httpx<1"')
    seen.add(bootstrap.fingerprint(["dev"]))
    assert len(seen) == 4
