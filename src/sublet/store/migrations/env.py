"""Alembic's entry point: runs the migrations on the given connection."""

from __future__ import annotations

from alembic import context

from sublet.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
context.run_migrations()
