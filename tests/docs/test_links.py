"""Links and pictures of the pages that `make docs` does not build lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, name, pages

OUTSIDE = [page for page in pages() if not page.is_relative_to(ROOT / "docs")]


@pytest.mark.parametrize("page", OUTSIDE, ids=name)
def test_a_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    local = [link.split("#")[0] for link in links if "://" not in link]
    assert [link for link in local if link and not (page.parent / link).exists()] == []


def test_every_design_note_is_in_their_index() -> None:
    index = (ROOT / "docs" / "design" / "README.md").read_text()
    notes = [p.name for p in (ROOT / "docs" / "design").glob("*.md") if p.name != "README.md"]
    assert [note for note in notes if f"({note})" not in index] == []
