"""Alerts that are done with fall under retention, and pruning knows how far it has come; late facts
say whether they would have mattered, endpoints why they cannot be sent to."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_KINDS = "late_facts, rejected_events, batches, delivery_attempts, history, answers"


def upgrade() -> None:
    op.execute("alter table runs add pruned_to timestamptz")
    op.execute(
        "comment on column runs.pruned_to is "
        "'wall time up to which decided answers were looked at for pruning'"
    )
    op.execute("create index outbox_done_idx on outbox (done_at) where status <> 'waiting'")
    op.execute("insert into retention (what, days) values ('alerts', 90)")
    op.execute(f"comment on column retention.what is '{_KINDS}, alerts or runs'")

    op.execute(
        "comment on column endpoints.status_reason is 'why it is disabled, or cannot be sent to'"
    )

    for table, late in (("all_late_facts", ""), ("staged_events", "late: ")):
        op.execute(f"alter table {table} add matched boolean")
        op.execute(
            f"comment on column {table}.matched is "
            f"'{late}whether it matches an atom of a premise set'"
        )


def downgrade() -> None:
    for table in ("all_late_facts", "staged_events"):
        op.execute(f"alter table {table} drop matched")
    op.execute("comment on column endpoints.status_reason is 'why it is disabled'")
    op.execute(f"comment on column retention.what is '{_KINDS} or runs'")
    op.execute("delete from retention where what = 'alerts'")
    op.execute("drop index outbox_done_idx")
    op.execute("alter table runs drop pruned_to")
