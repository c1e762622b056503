"""How to open an interactive session: its address comes last, alone on its line, to be clicked or copied."""

from __future__ import annotations

from datetime import datetime, timedelta

from sublet.booking.views.sessions import ConnectorView, SessionView
from sublet.cli.texts import when

SOON = timedelta(seconds=10)
SHELL = "uri:shell"
NOUNS = {"uri:jupyter-lab": "JupyterLab", SHELL: "The shell", "uri:desktop": "The desktop", "uri:code": "VS Code"}
NOUNS |= {"uri:rstudio": "RStudio", "uri:web": "The application"}


def open_ways(view: SessionView) -> list[ConnectorView]:
    """Return the connectors that are available."""
    return [way for way in view.connectors if way.status == "AVAILABLE" and way.location]


def ready_lines(view: SessionView) -> list[str]:
    """Return lines that say what is ready and how to open it; the last is the address. Empty if nothing is ready."""
    lines: list[str] = []
    for way in sorted(open_ways(view), key=lambda way: way.kind == SHELL):
        noun = NOUNS.get(way.kind, "It")
        typed = f"Type sublet attach {view.short}, or open" if way.kind == SHELL else "Open"
        lines += [f"{noun} is ready. {typed} this in a browser:", way.location]
    return lines


def advice_for(view: SessionView, now: datetime) -> str:
    """Say how to get back to a session that keeps running, or starts later."""
    is_later = view.started is None and view.start is not None and view.start - now >= SOON
    goes_on = f"It starts {when(view.start, now)}" if is_later else "It keeps running"
    verb = "Connect to it" if view.kind == "interactive" else "Follow it"
    return f"{goes_on}. {verb} with: sublet {command_for(view)}"


def command_for(view: SessionView) -> str:
    """Return the command that connects to a session, or follows its output."""
    return f"attach {view.short}" if view.kind == "interactive" else f"logs -f {view.short}"
