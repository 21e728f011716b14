"""The loop over the events of cells, compiled: one pass, no state kept between cells.

A cell has a handful of events, each of which is a look-up in the automaton's tables; putting them
in order and following the triples that come and go takes place in registers and a few bytes of
stack. As vectors over all cells the same steps move every intermediate value through memory:
measured on ShortStop, ten times the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from resolution.kernel.columns import Bools, Ints
from resolution.kernel.compiled import compiled

Table = npt.NDArray[np.int64]

_SPAN = 64
"""Time points between the first and the last event of a cell for which each point has a list."""


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
    over: Bools,
    which: npt.NDArray[np.int32],
    when: Table,
    unknown: Ints,
) -> tuple[Any, Any, Any]:
    """Drives `cells` through their events: returns cells done, rows written, unknown edges met.

    A row is (cell, place among `visible`) in `which` and (start, end) in `when`. A cell that meets
    an edge which the automaton does not know yet leaves no rows: its number is put where the done
    ones were, so that the first of `cells` are those to drive again. It stops early where there may
    be no room for the rows of one more cell.
    """
    atoms = arrivals.shape[0]
    moments = np.empty(atoms, np.int64)
    symbols = np.empty(atoms, np.int64)
    ordered = np.empty(atoms, np.int64)
    following = np.empty(atoms, np.int64)
    heads = np.full(_SPAN, -1, np.int64)
    widest = 1
    for state in range(len(offsets) - 1):
        widest = max(widest, offsets[state + 1] - offsets[state])
    open_rows = np.empty(widest, np.int64)
    open_masks = np.empty(widest, np.int64)
    next_rows = np.empty(widest, np.int64)
    next_masks = np.empty(widest, np.int64)
    rows = 0
    again = 0
    for at in range(len(cells)):
        if rows + (widest + 1) * (atoms + 1) > when.shape[1]:
            return at, rows, again
        cell = cells[at]
        events = 0
        first, last = never, 0
        for atom in range(atoms):
            moment, symbol = arrivals[atom, cell], 2 * atom
            if moment >= never:
                moment, symbol = closes[atom, cell], 2 * atom + 1
            if moment >= never:
                continue
            moments[events], symbols[events] = moment, symbol
            first, last = min(first, moment), max(last, moment)
            events += 1
        if last - first < _SPAN:
            for event in range(events - 1, -1, -1):
                place = moments[event] - first
                following[event] = heads[place]
                heads[place] = event
            done = 0
            for place in range(last - first + 1):
                event = heads[place]
                heads[place] = -1
                while event >= 0:
                    ordered[done] = event
                    done += 1
                    event = following[event]
        else:
            for event in range(events):
                place = event
                while place > 0 and moments[ordered[place - 1]] > moments[event]:
                    ordered[place] = ordered[place - 1]
                    place -= 1
                ordered[place] = event
        state = states[cell]
        begun, shown, event = rows, 0, 0
        while event < events and not over[state]:
            moment = moments[ordered[event]]
            before = state
            while event < events and moments[ordered[event]] == moment:
                edge = state * 2 * atoms + symbols[ordered[event]]
                state = edges[edge]
                if state < 0:
                    break
                event += 1
            if state < 0:
                unknown[again] = edge
                cells[again] = cell
                again += 1
                rows = begun
                break
            if state == before:
                continue
            # Both are in order, so one walk along them finds what goes, what stays and what comes.
            slot, kept = 0, 0
            for mask in range(offsets[state], offsets[state + 1]):
                hypotheses = visible[mask]
                while slot < shown and open_masks[slot] < hypotheses:
                    when[1, open_rows[slot]] = moment
                    slot += 1
                if slot < shown and open_masks[slot] == hypotheses:
                    next_rows[kept] = open_rows[slot]
                    slot += 1
                else:
                    which[0, rows], which[1, rows] = cell, mask
                    when[0, rows], when[1, rows] = moment, never
                    next_rows[kept] = rows
                    rows += 1
                next_masks[kept] = hypotheses
                kept += 1
            while slot < shown:
                when[1, open_rows[slot]] = moment
                slot += 1
            open_rows, next_rows = next_rows, open_rows
            open_masks, next_masks = next_masks, open_masks
            shown = kept
    return len(cells), rows, again
