"""Many pending answers, made in SQL: what a screen costs must not depend on how many there are."""

from __future__ import annotations

import time

from sqlalchemy import text

from storage.store import Store

_ROWS = """
with made as (
    select n, md5('a' || n)::uuid as answer_id, md5('t' || n)::uuid as id,
           'wt' || (n % 50000) as device, :now - 60 + n / 500 as at,
           case when n % 10 = 0 then null else :now + 30 + n / 300 end as deadline
    from generate_series(1, :rows) n
)
insert into triples (run, answer_id, id, query, answer, bindings, premise, evidence, arrivals,
                     hypotheses, closes, conditions, deadline, reason, start_tau, batch, live,
                     shown, status, since, changed_at)
select :run, answer_id, id, 'Malf', format('Malf(%s, %s)', device, at),
       jsonb_build_object('X', device, 'T', at), 1,
       jsonb_build_array(format('Temp(%s, high, %s)', device, at)), array[at],
       jsonb_build_array(format('Temp(%s, high, %s)', device, at + 10),
                         format('Temp(%s, high, %s)', device, at + 20)),
       array[deadline, deadline + 10], '[]', deadline,
       format('Temp(%s, high, %s)', device, at + 10),
       at, 0, true, true, 'pending', at, now()
from made
"""


def fill(store: Store, run: int, rows: int) -> None:
    """That many pending answers of `Malf`, one in ten of them without a deadline."""
    values = {"run": run, "rows": rows, "now": int(time.time())}
    with store.engine("owner") as engine, engine.begin() as db:
        db.execute(text(_ROWS), values)
        db.execute(
            text("update counts set pending = pending + :rows where run = :run and query = 'Malf'"),
            values,
        )
        db.execute(text("analyze triples"))
