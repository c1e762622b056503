"""Optional parts of Sublet: `pip install sublet` installs only the client, `sublet[server]` the service too."""

from __future__ import annotations

from importlib.util import find_spec

from sublet.kernel.errors import ServerNotInstalled

SERVER = ("alembic", "fastapi", "jinja2", "pydantic", "sqlalchemy", "structlog", "uvicorn")  # of `sublet[server]`


def has_server() -> bool:
    """Whether the packages that a service needs are installed."""
    return all(find_spec(name) is not None for name in SERVER)


def require_server(what: str) -> None:
    """Raise ServerNotInstalled unless the packages that a service needs are installed."""
    if not has_server():
        raise ServerNotInstalled(what=what)
