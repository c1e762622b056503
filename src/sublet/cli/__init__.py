"""The command line: one file per noun, each loaded when one of its commands is typed."""

from __future__ import annotations


def main() -> None:
    """Run the command that was typed, and exit as it says."""
    import sys

    from sublet.cli.app import run

    sys.exit(run(sys.argv[1:]))
