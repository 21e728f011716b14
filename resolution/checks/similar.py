"""Names like another name: what a misspelt one may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_LONGEST = 40  # characters of a name that is compared at all
_CANDIDATES = 1_000  # names that one is compared with
_LOOKUPS = 100  # names looked up: a list with more mistakes than this is not read to its end


class Similar:
    """An index of names. Bounded in time, so that a large and broken program is told about soon."""

    def __init__(self, names: Iterable[str]) -> None:
        self._exact: dict[str, str] = {}
        self._by_length: dict[int, list[str]] = {}
        for name in names:
            folded = name.casefold()
            if folded not in self._exact:
                self._exact[folded] = name
                self._by_length.setdefault(len(folded), []).append(folded)
        self._found: dict[str, str | None] = {}

    def closest(self, name: str) -> str | None:
        if name not in self._found:
            if len(self._found) >= _LOOKUPS or len(name) > _LONGEST:
                return None
            self._found[name] = self._search(name.casefold())
        return self._found[name]

    def hint(self, name: str) -> str | None:
        """`did you mean …?`, or nothing."""
        closest = self.closest(name)
        if closest is None:
            return None
        if closest.casefold() == name.casefold():
            return f"did you mean `{closest}`? Upper and lower case are different letters"
        return f"did you mean `{closest}`?"

    def _search(self, folded: str) -> str | None:
        if folded in self._exact:
            return self._exact[folded]
        candidates = (
            candidate
            for by in (0, 1, -1, 2, -2)
            for candidate in self._by_length.get(len(folded) + by, ())
        )
        found = get_close_matches(folded, islice(candidates, _CANDIDATES), n=1, cutoff=0.7)
        return self._exact[found[0]] if found else None
