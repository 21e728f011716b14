"""Triples that came and went within one batch are kept in one row; what is shown for a pending
answer is the triple that closes last; a refutation counts once its time point is complete."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_STAGED = {
    "first_tau": ("bigint not null", "least start of it and of those in `past`"),
    "past": ("text", "JSON: triples that it stands for besides"),
    "live": ("boolean", "first: pending now"),
    "shown": ("boolean", "first: shown for its answer"),
    "status": ("text", "first: of the answer"),
    "since": ("bigint", "first: τ at which the answer first was"),
    "decided_at": ("bigint", "first: τ at which it was decided"),
}
_STATUS = "of the answer, where this one is shown: pending, confirmed"


def upgrade() -> None:
    op.execute("truncate staged_changes, staged_events, staged_parts, staged_marks")
    for name, (kind, comment) in _STAGED.items():
        op.execute(f"alter table staged_changes add {name} {kind}")
        op.execute(f"comment on column staged_changes.{name} is '{comment}'")
    op.execute("comment on column staged_changes.op is 'put, drop, new or first'")
    op.execute("create index triples_shown_idx on triples (answer_id) where shown")
    _run("0003_up.sql")
    op.execute(
        f"comment on column triples.status is '{_STATUS}, or refuted (once decided_at is complete)'"
    )


def downgrade() -> None:
    _run("0003_down.sql")
    op.execute("truncate staged_changes, staged_events, staged_parts, staged_marks")
    for name in _STAGED:
        op.execute(f"alter table staged_changes drop {name}")
    op.execute("comment on column staged_changes.op is 'put or drop'")
    op.execute("drop index triples_shown_idx")
    op.execute(f"comment on column triples.status is '{_STATUS} or refuted'")


def _run(file: str) -> None:
    cursor = op.get_bind().connection.cursor()  # plain psycopg: no `%` or `:` is read as a mark
    cursor.execute(Path(__file__).with_name(file).read_text())
