"""The migrations of the tables, which `Store.open` runs."""

from __future__ import annotations

from alembic.config import Config
from sqlalchemy import Connection


def config_for(connection: Connection) -> Config:
    """Return Alembic's configuration to work on an open connection, within its transaction."""
    config = Config()
    config.set_main_option("script_location", "sublet.store:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
