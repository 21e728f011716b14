"""The loop over the events of cells, compiled: one pass, no state kept between cells.

A cell has a handful of events, each of which is a look-up in the automaton's tables; sorting them
and following the triples that come and go takes place in registers and a few bytes of stack. As
vectors over all cells the same steps move every intermediate value through memory: measured on
ShortStop, ten times the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from resolution.kernel.columns import Ints
from resolution.kernel.compiled import compiled

Table = npt.NDArray[np.int64]


@compiled
def drive(
    cells: Ints,
    states: npt.NDArray[np.int32],
    arrivals: Table,
    closes: Table,
    never: int,
    edges: npt.NDArray[np.int32],
    offsets: Ints,
    visible: Ints,
    out: Table,
    unknown: Ints,
) -> tuple[Any, Any, Any]:
    """Drives `cells` through their events: returns cells done, columns written, unknown edges met.

    A column of `out` is (cell, hypotheses, state, start, end). A cell that meets an edge which the
    automaton does not know yet leaves no rows: its number is put where the done ones were, so that
    the first of `cells` are those to drive again. It stops early where `out` may not hold the rows
    of one more cell.
    """
    atoms = arrivals.shape[0]
    moments = np.empty(atoms, np.int64)
    symbols = np.empty(atoms, np.int64)
    widest = 0
    for state in range(len(offsets) - 1):
        widest = max(widest, offsets[state + 1] - offsets[state])
    shown = np.empty(max(widest, 1), np.int64)
    rows = 0
    again = 0
    for at in range(len(cells)):
        if rows + (widest + 1) * (atoms + 1) > out.shape[1]:
            return at, rows, again
        cell = cells[at]
        events = 0
        for atom in range(atoms):
            moment, symbol = arrivals[atom, cell], 2 * atom
            if moment >= never:
                moment, symbol = closes[atom, cell], 2 * atom + 1
            if moment >= never:
                continue
            place = events
            while place > 0 and moments[place - 1] > moment:
                moments[place], symbols[place] = moments[place - 1], symbols[place - 1]
                place -= 1
            moments[place], symbols[place] = moment, symbol
            events += 1
        state = states[cell]
        first, open_rows, event = rows, 0, 0
        while event < events:
            moment = moments[event]
            while event < events and moments[event] == moment:
                edge = state * 2 * atoms + symbols[event]
                state = edges[edge]
                if state < 0:
                    break
                event += 1
            if state < 0:
                unknown[again] = edge
                cells[again] = cell
                again += 1
                rows = first
                break
            low, high = offsets[state], offsets[state + 1]
            kept = 0
            for slot in range(open_rows):
                row = shown[slot]
                stays = False
                for mask in range(low, high):
                    if visible[mask] == out[1, row]:
                        stays = True
                if stays:
                    shown[kept] = row
                    kept += 1
                else:
                    out[4, row] = moment
            known = kept
            for mask in range(low, high):
                there = False
                for slot in range(known):
                    if out[1, shown[slot]] == visible[mask]:
                        there = True
                if not there:
                    out[0, rows], out[1, rows], out[2, rows] = cell, visible[mask], state
                    out[3, rows], out[4, rows] = moment, never
                    shown[kept] = rows
                    kept += 1
                    rows += 1
            open_rows = kept
    return len(cells), rows, again
