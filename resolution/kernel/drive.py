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

from resolution.kernel.automaton import EDGE, HEAD
from resolution.kernel.columns import Int32s, Ints
from resolution.kernel.compiled import compiled

Events = npt.NDArray[Any]
"""Of 32 bits where that is enough, else of 64."""


@compiled
def drive(
    cells: Ints,
    states: Int32s,
    events: Events,
    row: Ints,
    shift: Ints,
    table: Int32s,
    width: int,
    moves: Int32s,
    number: Int32s,
    most: int,
    least: Ints,
    weight: Ints,
    alike: Int32s,
    rows: int,
    which: Int32s,
    when: Events,
    unknown: Ints,
) -> tuple[Any, Any, Any]:
    """Drives `cells` through their events: returns cells done, rows written, unknown edges met.

    A row is (cell, place among the triples of its state) in `which` and (start, end) in `when`,
    which count from the cell's own time. A cell that meets an edge which the automaton does not
    know yet leaves no rows: its number is put where the done ones were, so that the first of
    `cells` are those to drive again. It stops early where there may be no room for one more cell.

    Cells whose events are equal have equal rows: where `alike` has a place for each combination
    (see `Board.combinations`), it keeps where the rows of the first such cell stand.
    """
    atoms = len(row)
    never = np.iinfo(when.dtype).max
    places = events.ravel()
    at_atom = row * events.shape[1] + shift
    ordered = np.empty(atoms, np.int64)
    symbols = np.empty(atoms, np.int64)
    row_of = np.empty(len(number) + 1, np.int64)
    again = 0
    for at in range(len(cells)):
        if rows + most > when.shape[1]:
            return at, rows, again
        cell = cells[at]
        waits, combination, count = 1, np.int64(states[at]), 0
        if len(alike):
            for atom in range(atoms):
                event = places[at_atom[atom] + cell]
                waits &= event
                combination += (event - least[atom]) * weight[atom]
            if not waits and alike[combination, 1] >= 0:
                for other in range(alike[combination, 0], alike[combination, 1]):
                    which[0, rows], which[1, rows] = cell, which[1, other]
                    when[0, rows], when[1, rows] = when[0, other], when[1, other]
                    rows += 1
                continue
        for atom in range(atoms):
            found = places[at_atom[atom] + cell]
            waits &= found
            if found == never:
                continue
            # Within a moment what closes comes first: fewer triples come only to go at once.
            event = (found + 2 * shift[atom]) ^ 1
            slot = count
            while slot > 0 and ordered[slot - 1] > event:
                ordered[slot], symbols[slot] = ordered[slot - 1], symbols[slot - 1]
                slot -= 1
            ordered[slot] = event
            symbols[slot] = HEAD + EDGE * (2 * atom + 1 - (event & 1))
            count += 1
        if waits:
            continue  # nothing arrives
        begun, done = rows, 0
        state = np.int64(states[at]) * width
        while done < count and not table[state]:
            moment = ordered[done] >> 1
            first, fresh = done, rows
            while done < count and ordered[done] >> 1 == moment:
                edge = state + symbols[done]
                state = np.int64(table[edge])
                if state < 0:
                    unknown[again] = edge
                    break
                done += 1
                for move in range(table[edge + 1], table[edge + 2]):
                    gone = row_of[moves[move]]
                    if gone < fresh:
                        when[1, gone] = moment
                    else:  # it came in this very moment: the last row takes its place
                        rows -= 1
                        which[1, gone] = which[1, rows]
                        row_of[number[which[1, gone]]] = gone
                for move in range(table[edge + 2], table[edge + 3], 2):
                    which[0, rows], which[1, rows] = cell, moves[move]
                    when[0, rows], when[1, rows] = moment, never
                    row_of[moves[move + 1]] = rows
                    rows += 1
            if state < 0:
                break
            if done - first > 1:  # the places are those in the state after all of the moment
                for new in range(fresh, rows):
                    same = number[which[1, new]]
                    place = table[state + 1]
                    while number[place] != same:
                        place += 1
                    which[1, new] = place
        if state < 0:
            cells[again], states[again] = cell, states[at]
            again += 1
            rows = begun
        elif len(alike):
            alike[combination, 0], alike[combination, 1] = begun, rows
    return len(cells), rows, again
