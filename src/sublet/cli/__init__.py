"""The frame of the command line: entry, output, errors, prompts and progress; each subject has its own commands."""

from sublet.cli.app import cli, main

__all__ = ["cli", "main"]
