"""Hooks: who is told of a session's changes, by a call or by mail."""

from __future__ import annotations

from sublet.service.apps import Apps


class Hooks(Apps):
    """Hooks: who is told of a session's changes, by a call or by mail."""
