"""What a fuzzer found, and its seeds: each is refused in words, or taken."""

from __future__ import annotations

import pytest

from tests.chaos.fuzz import NAMES, _seeds
from tests.chaos.targets import TARGETS

FOUND = [
    ("address", b"[::x%:80/x"),  # brackets that hold no address
    ("address", b"//]X\xaf"),
    ("address", b"localhost/localhost"),
]


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found_once(name: str, data: bytes) -> None:
    TARGETS[name](data)


@pytest.mark.parametrize("name", NAMES)
def test_the_seeds(name: str) -> None:
    assert set(TARGETS) == set(NAMES)
    for seed in _seeds(name):
        TARGETS[name](seed)
