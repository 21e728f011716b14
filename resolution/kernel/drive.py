"""The loop over the events of cells, compiled: one pass, no state kept between cells.

A cell has a handful of events, each of which is a look-up in the automaton's tables; putting them
in order (they nearly are: atoms are sorted by their times) and following the triples that come and
go takes place in registers and a few bytes of stack. As vectors over all cells the same steps move
every intermediate value through memory: measured on ShortStop, ten times the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from resolution.kernel.columns import Bools, Ints
from resolution.kernel.compiled import compiled

Table = npt.NDArray[np.int64]


@compiled
def drive(
    cells: Ints,
    states: npt.NDArray[np.int32],
    board: Table,
    row: Ints,
    shift: Ints,
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
    atoms = len(row)
    places = board.ravel()
    at_atom = row * board.shape[1] + shift
    symbols = np.empty(atoms, np.int64)
    ordered = np.empty(atoms, np.int64)
    widest = 1
    for state in range(len(offsets) - 1):
        widest = max(widest, offsets[state + 1] - offsets[state])
    open_rows = np.empty(widest, np.int64)
    open_masks = np.empty(widest, np.int64)
    next_rows = np.empty(widest, np.int64)
    next_masks = np.empty(widest, np.int64)
    rows = 0
    again = 0
    no_event = np.iinfo(np.int64).max
    for at in range(len(cells)):
        if rows + (widest + 1) * (atoms + 1) > when.shape[1]:
            return at, rows, again
        cell = cells[at]
        events, waits = 0, 1
        for atom in range(atoms):
            event = places[at_atom[atom] + cell]
            waits &= event
            if event == no_event:
                continue
            slot = events
            while slot > 0 and ordered[slot - 1] > event:
                ordered[slot], symbols[slot] = ordered[slot - 1], symbols[slot - 1]
                slot -= 1
            ordered[slot], symbols[slot] = event, 2 * atom + (event & 1)
            events += 1
        if waits:
            continue  # nothing arrives
        state = states[cell]
        begun, shown, done = rows, 0, 0
        while done < events and not over[state]:
            moment = ordered[done] >> 1
            before = state
            while done < events and ordered[done] >> 1 == moment:
                edge = state * 2 * atoms + symbols[done]
                state = edges[edge]
                if state < 0:
                    break
                done += 1
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
