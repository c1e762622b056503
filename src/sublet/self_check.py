"""Checks of `sublet doctor` that need the service's own code: of its settings and database. Needs `sublet[server]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError

from sublet.kernel.db.engine import Database
from sublet.kernel.db.versions import NEWER, VERSION, find_newer
from sublet.kernel.errors import SubletError
from sublet.kernel.settings import Settings
from sublet.platforms.registry import load_platforms
from sublet.policies import has_owner

PATIENCE = 5  # seconds for a connection to PostgreSQL


@dataclass(frozen=True)
class ReadSettings:
    """The settings, as the service would read them."""

    database: str  # the database's address
    broken: Mapping[str, str]  # platform → why its plug-in can't be loaded
    is_gateway: bool = False
    networks: Mapping[str, str] = field(default_factory=dict)  # platform on this machine → its containers' policy


@dataclass(frozen=True)
class PostgresState:
    """The state of a PostgreSQL database."""

    where: str  # without the password
    version: str = ""
    trouble: str = ""  # why it can't be used
    hint: str = ""


def read_settings(home: str) -> ReadSettings:
    """Read the settings and load their platforms; raise BadSettings if a setting is wrong."""
    settings = Settings.load(Path(home))
    platforms, broken = load_platforms(settings.platforms, settings.refuse)
    is_gateway = not has_owner(settings)  # its people must not reach this machine's network
    here = {name: platform for name, platform in platforms.items() if platform.is_here}
    networks = {name: platform.choose_network_policy(is_gateway) for name, platform in here.items()}
    return ReadSettings(settings.database_url, broken, is_gateway, networks)


def look_at_postgres(url: str) -> PostgresState:
    """Connect to a PostgreSQL database, and return its version or why it can't be used."""
    try:
        database = Database(url)
    except SubletError as error:
        return PostgresState("PostgreSQL", trouble=error.message, hint=error.advice)
    engine = create_engine(database.url, connect_args={"connect_timeout": PATIENCE})
    try:
        with engine.connect() as connection:
            version = str(connection.exec_driver_sql("SHOW server_version").scalar())
            has_tables = connection.exec_driver_sql("SELECT to_regclass('alembic_version')").scalar()
            newer = find_newer(connection.exec_driver_sql(VERSION).scalar() if has_tables else None)
    except SQLAlchemyError as error:
        words = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        return PostgresState(database.where, trouble=words, hint="Is it running? `database` says where it should be.")
    finally:
        engine.dispose()
        database.close()
    return PostgresState(database.where, version.split()[0], newer, NEWER)
