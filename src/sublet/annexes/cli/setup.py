"""`annex setup`: sets up HTCondor and an access point without an administrator."""

from __future__ import annotations

import time

import click

from sublet.annexes.calls import access_point as calls
from sublet.annexes.views.access_point import AccessPointView
from sublet.cli.command import command
from sublet.cli.output import Output, pairs
from sublet.cli.progress import Progress
from sublet.cli.texts import length
from sublet.client.link import Link
from sublet.kernel.errors import NoHTCondor, ReleaseRefused

LOOK = 0.3  # seconds between checks of a download
KINDS = {"own": "your own, run by Sublet", "machine": "this machine's"}


@command("setup", "sublet annex setup", "sublet annex setup --fetch")
@click.option("--fetch", is_flag=True, help="Download HTCondor into SUBLET_HOME if it is not installed here.")
@click.option("--system", default="", metavar="NAME", help="A system whose nodes have to reach it.")
@click.option("--show", "only_show", is_flag=True, help="Only say how it is.")
@click.option("--stop", is_flag=True, help="Stop the access point that Sublet runs; its queue stays.")
def setup(out: Output, fetch: bool, system: str, only_show: bool, stop: bool) -> int:
    """Set up the access point, where your HTCondor jobs wait and your nodes attach.

    The machine's own access point is used if it takes your jobs. Otherwise Sublet runs one under your account, which
    keeps running without the service. `annex create` does this automatically; this command also says what is missing.
    """
    link = out.link()
    if stop:
        link.do(calls.stop())
    view = link.do(calls.access_point())
    if not stop and not only_show:
        view = make_ready(out, link, view, fetch=fetch, system=system)
    out.show(view, lambda: describe_setup(view), lambda: [view.collector or view.stage])
    return 0 if view.stage == "ready" or stop or only_show else 1


def make_ready(out: Output, link: Link, view: AccessPointView, *, fetch: bool, system: str) -> AccessPointView:
    """Download HTCondor if it is missing and `fetch` is set, then start the access point."""
    if view.stage == "absent" and not fetch:
        raise NoHTCondor(hint=ways(view))
    if view.stage in ("absent", "fetching"):
        link.do(calls.set_up(fetch=True, system=system))
        follow_download(out, link)
    return link.do(calls.set_up(system=system))


def follow_download(out: Output, link: Link) -> None:
    """Show the progress of the download until it ends; raise ReleaseRefused if it failed."""
    line = Progress(wanted=out.for_people)
    try:
        while (view := link.do(calls.access_point())).stage == "fetching":
            line.show(f"fetching HTCondor: {view.progress}")
            time.sleep(LOOK)
    finally:
        line.end()
    if view.stage == "absent":
        raise ReleaseRefused(view.problem, hint=view.hint)


def ways(view: AccessPointView) -> str:
    """Describe how to get HTCondor."""
    package = f"Ask an administrator for `{view.package}`, or: " if view.package else ""
    which = "" if view.url else "set `release` in the section [annex] of sublet.toml, then "
    return f"{package}{which}`sublet annex setup --fetch` brings it into SUBLET_HOME."


def describe_setup(view: AccessPointView) -> list[str]:
    """Describe the access point, as lines of text."""
    return pairs(
        [
            ("access point", KINDS.get(view.kind, "")),
            ("state", view.stage if not view.problem else f"{view.stage}: {view.problem}"),
            ("HTCondor", f"{view.version}, in {view.release}" if view.version else ""),
            ("nodes connect to", view.collector),
            ("schedd", view.schedd),
            ("you are", view.owner),
            ("note", view.note),
            ("job lease", length(view.job_lease) if view.job_lease else ""),
            ("HTCondor's tools", f"export CONDOR_CONFIG={view.configuration}" if view.configuration else ""),
        ]
    )
