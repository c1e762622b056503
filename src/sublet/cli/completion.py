"""`completion`: the script that makes a shell complete Sublet's words."""

from __future__ import annotations

import click

from sublet.cli.command import command
from sublet.cli.output import Output

SHELLS = ("bash", "zsh", "fish")


@command("completion", 'eval "$(sublet completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, out: Output, /, shell: str) -> None:
    """Print the completion script of a shell; put its line into the shell's start-up file."""
    from click.shell_completion import get_completion_class  # only needed here

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    source = kind(ctx.find_root().command, {}, "sublet", "_SUBLET_COMPLETE").source()
    out.show({"shell": shell, "script": source}, lambda: [source], lambda: [source])
