"""The command line: one file per noun, each loaded when one of its commands is typed."""

from sublet.cli.app import cli, main

__all__ = ["cli", "main"]
