"""Ids from columns are those that the definition computes one by one."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from resolution import triples
from resolution.kernel.ids import identifiers


@settings(deadline=None)
@given(st.text(), st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40)))
def test_ids_are_those_of_the_definition(query: str, texts: list[str]) -> None:
    query = query.encode("utf-8", "replace").decode()
    found = identifiers(query, pa.array(texts, pa.string()))
    found.validate(full=True)
    assert found.to_pylist() == triples.identifiers(query, texts)


def test_a_slice_of_a_column() -> None:
    texts = pa.array([f"Malf(wt{n}, {n})" for n in range(100)])
    assert identifiers("q", texts[40:43]).to_pylist() == triples.identifiers(
        "q", texts[40:43].to_pylist()
    )
    assert len(identifiers("q", texts[:0])) == 0
