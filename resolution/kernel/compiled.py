"""Loops that are compiled to machine code when first called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles when first called, and keeps the result on disk where the code lies on one."""
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # shipped to an executor as an archive
        return numba.njit(nogil=True)(function)
