"""Alembic runs this. `storage.schema` hands it the connection; there is no configuration file."""

from __future__ import annotations

from alembic import context

from storage.models import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
