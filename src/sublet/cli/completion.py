"""`completion`: prints the script for a shell's completion."""

from __future__ import annotations

import click

from sublet.cli.command import COMPLETING, command
from sublet.cli.output import Output

SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    'eval "$(sublet completion bash)"   # in ~/.bashrc',
    'eval "$(sublet completion zsh)"    # in ~/.zshrc, after compinit',
    "sublet completion fish | source    # in ~/.config/fish/config.fish",
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, out: Output, /, shell: str) -> None:
    """Print the completion script of a shell; put its line into the shell's start-up file.

    Tab then completes commands, options and files, and the names of sessions, offers, platforms, systems, queues,
    annexes and the like. This never starts a service.
    """
    from click.shell_completion import get_completion_class  # only needed here

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    source = kind(ctx.find_root().command, {}, "sublet", COMPLETING).source()
    out.show({"shell": shell, "script": source}, lambda: [source], lambda: [source])
