"""The first schema of the store."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_VIEWS = (
    "answer_history",
    "history",
    "rejected_events",
    "late_facts",
    "refuted_answers",
    "confirmed_answers",
    "pending_answers",
    "all_refuted_answers",
    "all_confirmed_answers",
    "all_pending_answers",
    "answers",
)
_TABLES = (
    "retention",
    "staged_parts",
    "staged_marks",
    "staged_events",
    "staged_changes",
    "delivery_attempts",
    "outbox",
    "endpoints",
    "delays",
    "batches",
    "all_rejected_events",
    "all_late_facts",
    "tallies",
    "counts",
    "triples",
    "runs",
    "streams",
    "queries",
    "programs",
)


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()  # plain psycopg: no `%` or `:` is read as a mark
    for part in ("tables", "views"):
        cursor.execute(Path(__file__).with_name(f"0001_{part}.sql").read_text())


def downgrade() -> None:
    for view in _VIEWS:
        op.execute(f"drop view {view}")
    for table in _TABLES:
        op.execute(f"drop table {table}")
    op.execute("drop function ensure_partitions(timestamptz)")
