"""Parts of Sublet that are installed only where they are asked for: `pip install sublet` brings the client alone."""

from __future__ import annotations

from importlib.util import find_spec

from sublet.kernel.errors import ServerNotInstalled

SERVER = ("alembic", "fastapi", "jinja2", "pydantic", "sqlalchemy", "structlog", "uvicorn")  # of `sublet[server]`


def has_server() -> bool:
    """Whether a service can run here."""
    return all(find_spec(name) is not None for name in SERVER)


def require_server(what: str) -> None:
    """ServerNotInstalled unless a service can run here."""
    if not has_server():
        raise ServerNotInstalled(what=what)
