"""The `sublet` command: its subcommands, the module of each, and how errors are reported."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import click

from sublet.cli.command import CommandGroup, Example
from sublet.cli.problems import Problem, wants_json
from sublet.kernel.errors import SubletError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Section → command → its module and a summary. The help is made from this alone; a module is imported only when
# one of its commands is used.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Ask and run": {
        "ask": ("booking.cli.asking", "When and where can this run? Shows offers."),
        "accept": ("booking.cli.asking", "Take an offer."),
        "offers": ("booking.cli.offers", "List the offers that you can still accept."),
        "reject": ("booking.cli.offers", "Decline an offer, or all of them."),
        "run": ("booking.cli.running", "Ask, take the best offer, follow the output."),
        "sweep": ("booking.cli.sweeping", "Run a command with many values, as tasks of one session."),
        "booking": ("booking.cli.series", "Book a request at recurring times."),
        "again": ("booking.cli.rerun", "Run a session again, with changes."),
    },
    "Sessions": {
        "ps": ("booking.cli.sessions", "List sessions."),
        "status": ("booking.cli.sessions", "Show everything about a session."),
        "logs": ("booking.cli.logs", "Show what a session printed."),
        "result": ("booking.cli.results", "List or fetch the files that a session left."),
        "explain": ("booking.cli.sessions", "Say why a session is (not) running."),
        "cancel": ("booking.cli.cancelling", "Cancel sessions."),
        "pause": ("booking.cli.pausing", "Pause sessions."),
        "resume": ("booking.cli.pausing", "Resume paused sessions."),
        "handover": ("booking.cli.handovers", "Give a session that has not begun to a colleague."),
        "extend": ("booking.cli.sessions", "Give a session more time."),
        "attach": ("booking.cli.attaching", "Open the terminal of a shell session."),
        "events": ("booking.cli.events", "Show what happened."),
        "notify": ("notices.cli.hooks", "Notifications of changes, by webhook or by mail."),
        "upload": ("data.cli.uploads", "Upload folders and files to the service, to use as data."),
        "place": ("data.cli.places", "Share directories on systems between sessions."),
        "cache": ("data.cli.caches", "Show and remove cached data."),
        "credential": ("data.cli.credentials", "Store credentials for your storage."),
        "delete": ("booking.cli.sessions", "Remove sessions that are over, with their files."),
        "archive": ("archive.cli.archive", "List, export and query records of past sessions."),
    },
    "Annexes": {
        "annex": ("annexes.cli.annexes", "Lease nodes of clusters under a name, for HTCondor jobs."),
        "job": ("annexes.cli.jobs", "Submit HTCondor jobs for an annex, move them, and say why they wait."),
        "dag": ("annexes.cli.dags", "Submit DAGs of HTCondor jobs for an annex."),
        "pilot": ("annexes.cli.pilots", "Let a site fetch requests for leases, and answer them itself."),
    },
    "Apps": {
        "app": ("apps.cli.apps", "Write, check and run apps: code with a manifest."),
    },
    "Gateway": {
        "login": ("people.cli.signing_in", "Sign in to a gateway; commands go there from then on."),
        "logout": ("people.cli.signing_in", "Sign out of a gateway."),
        "whoami": ("people.cli.signing_in", "Say who you are, and to which service."),
        "person": ("people.cli.people", "Add, list, show, block and remove a gateway's people."),
        "group": ("people.cli.groups", "Manage groups of people."),
        "access": ("access.cli.access", "Show what you may use; request access."),
        "rule": ("access.cli.rules", "Manage access rules: who may use what, and how much of it."),
        "budget": ("access.cli.budgets", "Limit what people, groups and projects spend."),
        "audit": ("access.cli.audit", "Show the audit log."),
    },
    "Service": {
        "up": ("cli.service", "Start your own service in the background."),
        "down": ("cli.service", "Stop your own service."),
        "serve": ("cli.serve", "Run a service in the foreground."),
        "backup": ("cli.backing_up", "Write a backup of the service here to one file."),
        "restore": ("cli.backing_up", "Restore a backup."),
        "platform": ("booking.cli.platforms", "List, show, check and drain platforms."),
        "broker": ("booking.cli.brokers", "Forward requests to other brokers; list and check them."),
        "pledge": ("access.cli.pledges", "Show and change the parts of platforms that are pledged."),
        "system": ("systems.cli.systems", "List, show, add and check clusters that others run."),
        "account": ("access.cli.accounts", "Add, list, check and remove community accounts."),
        "usage": ("access.cli.usage", "Show what people used, by quarter."),
        "token": ("people.cli.tokens", "Make, list and revoke tokens."),
        "doctor": ("cli.doctor.doctor", "Check this machine and the service."),
        "completion": ("cli.completion", "Print the completion script of a shell."),
    },
}
COMMANDS = {name: where for section in SECTIONS.values() for name, where in section.items()}
EXAMPLE = "sublet run --cores 2 --time 10m -- python sim.py"


class Sublet(CommandGroup):
    """The root group, which imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"sublet.{COMMANDS[cmd_name][0]}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was typed; raise a usage error with a suggestion if it is unknown."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"There is no command {args[0]}.{_nearest(args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands to the help, in sections."""
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, line) for name, (_, line) in commands.items()], col_max=12)


def _nearest(word: str) -> str:
    import difflib  # only when something was mistyped

    near = difflib.get_close_matches(word, COMMANDS, n=1)
    return f" Did you mean {near[0]}?" if near else ""


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version  # slow, and only needed here

        click.echo(f"sublet {version('sublet')}")
        ctx.exit()


cli = Sublet(
    "sublet",
    help="When, and where, can I run this? Sublet answers with offers that you can accept, and then runs it.",
    params=[
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
        ),
    ],
    epilog=Example(EXAMPLE),
    no_args_is_help=True,
    subcommand_metavar="COMMAND …",
)


def run(words: Sequence[str], **extra: Any) -> int:
    """Run a command line; return its exit code: 1 refused, 2 usage, 3 unreachable, 4 login needed."""
    try:
        code = cli.main(list(words), prog_name="sublet", standalone_mode=False, **extra)
        if sys.stdout is not None:  # it may be closed
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BaseException as error:  # each kind is reported in its own way
        for kind, tell in WAYS:
            if isinstance(error, kind):
                outcome = tell(error)
                return outcome if isinstance(outcome, int) else outcome.show(as_json=wants_json(list(words)))
        raise


def run_command_line() -> None:
    """Run the command in sys.argv, and exit with its code."""
    try:
        sys.exit(run(sys.argv[1:]))
    finally:
        for stream in (sys.stdout, sys.stderr):
            _drop_unwritable(stream)


def _drop_unwritable(stream: TextIO | None) -> None:
    """Discard output that can't be written; otherwise Python tries again at exit, complains, and exits with 120."""
    if stream is None or stream.closed:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _help(error: click.exceptions.NoArgsIsHelpError) -> int:
    click.echo(error.format_message())
    return 0


def _usage(error: click.UsageError) -> Problem:
    path = error.ctx.command_path if error.ctx else "sublet"
    return Problem(error.format_message(), f"`{path} --help` shows what can be typed.", 2)


def _report_abort(error: click.Abort) -> int | Problem:
    """Report that the person declined or interrupted, or that a question couldn't be answered without a terminal."""
    stopped = isinstance(error.__cause__ or error.__context__, KeyboardInterrupt)
    if stopped or (sys.stdin is not None and sys.stdin.isatty()):
        return 130
    click.echo(err=True)  # ends the line of the question
    return Problem("The question was not answered.", "Type it in a terminal, or answer by an option: --help.", 2)


def _had_enough(_: BaseException) -> int:
    """Exit successfully after the reader closed the pipe, as `head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def _leave(error: SystemExit) -> int:
    if error.code == 1 and hasattr(sys.stdout, "wrapped"):  # click's exit after a broken pipe
        return _had_enough(error)
    raise error


def _report_unwritten(error: OSError) -> Problem:
    if error.errno in FULL:
        detail = f"Nothing more can be written: {error.strerror}."
        return Problem(detail, "Free some space, and try again.", 1, "disk-full", 507)
    return _describe_unexpected(error)


def _describe_unexpected(error: Exception) -> Problem:
    if os.environ.get("SUBLET_DEBUG"):
        raise error
    from sublet.kernel.home import sublet_home

    hint = f"The service's log is {sublet_home().find_log()}; with SUBLET_DEBUG=1 the command shows where it happened."
    return Problem(f"something unexpected happened: {type(error).__name__}: {error}", hint, 1, "unexpected", 500)


# Exception → how it is reported; the first match counts.
WAYS: tuple[tuple[type[BaseException], Callable[[Any], int | Problem]], ...] = (
    (click.exceptions.NoArgsIsHelpError, _help),
    (click.UsageError, _usage),
    (click.Abort, _report_abort),
    (click.ClickException, lambda error: Problem(error.format_message(), "", 1)),
    (SubletError, Problem.from_error),
    (KeyboardInterrupt, lambda _: 130),
    (BrokenPipeError, _had_enough),
    (SystemExit, _leave),
    (OSError, _report_unwritten),
    (Exception, _describe_unexpected),
)
