"""How a person gets into an interactive session: its address comes last, alone in its line, to be clicked or copied."""

from __future__ import annotations

from sublet.booking.views.sessions import ConnectorView, SessionView

SHELL = "uri:shell"
NOUNS = {"uri:jupyter-lab": "JupyterLab", SHELL: "The shell", "uri:desktop": "The desktop", "uri:code": "VS Code"}
NOUNS |= {"uri:rstudio": "RStudio", "uri:web": "The application"}


def open_ways(view: SessionView) -> list[ConnectorView]:
    """The ways in that are open."""
    return [way for way in view.connectors if way.status == "AVAILABLE" and way.location]


def ready_lines(view: SessionView) -> list[str]:
    """What is ready, how to get there, and in the last line its address alone; nothing if nothing is ready."""
    lines: list[str] = []
    for way in sorted(open_ways(view), key=lambda way: way.kind == SHELL):
        noun = NOUNS.get(way.kind, "It")
        typed = f"Type sublet attach {view.short}, or open" if way.kind == SHELL else "Open"
        lines += [f"{noun} is ready. {typed} this in a browser:", way.location]
    return lines


def advice_for(view: SessionView) -> str:
    """How to come back to a session that keeps running."""
    verb = "Connect to it" if view.kind == "interactive" else "Follow it"
    return f"It keeps running. {verb} with: sublet {command_for(view)}"


def command_for(view: SessionView) -> str:
    """The command that shows what a session does."""
    return f"attach {view.short}" if view.kind == "interactive" else f"logs -f {view.short}"
