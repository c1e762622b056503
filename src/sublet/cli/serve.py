"""`serve`: the service in the foreground. The only module of the command line that imports the service."""

from __future__ import annotations

import gc
import os
from importlib import import_module
from urllib.parse import urlsplit

import click

from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.cli.unit import make_unit
from sublet.kernel.errors import NotHere
from sublet.kernel.extras import require_server
from sublet.kernel.home import sublet_home
from sublet.kernel.serving import ServeOptions
from sublet.kernel.whereabouts import OVERRIDE, objections, probe
from sublet.people.views.people import PersonView


@command(
    "serve",
    "sublet serve --host 0.0.0.0 --port 8080 --gateway --config /etc/sublet/sublet.toml",
)
@click.option("--host", metavar="ADDRESS", help="The address that TCP listens on.  [default: 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="PORT", help="The TCP port; 0 takes a free one, or the last."
)
@click.option("--platform", metavar="KIND", help="Only one platform, of this kind: local, memory.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False), help="Settings, instead of sublet.toml.")
@click.option("--gateway", is_flag=True, help="Serve many people; run nothing uncontained.")
@click.option("--database", metavar="URL", help="postgresql://… or sqlite:///…")
@click.option("--socket", type=click.Path(), help="The Unix socket, instead of the one in SUBLET_HOME.")
@click.option("--anyway", is_flag=True, envvar=OVERRIDE, help="Also on a login node or a network home.")
@click.option("--print-unit", is_flag=True, help="Print a unit for systemd that serves so, and end.")
@click.option("--personal", is_flag=True, hidden=True)
def serve(
    out: Output,
    host: str | None,
    port: int | None,
    platform: str | None,
    config: str | None,
    gateway: bool,
    database: str | None,
    socket: str | None,
    anyway: bool,
    print_unit: bool,
    personal: bool,
) -> None:
    """Run a service in the foreground, until Ctrl-C. Running sessions continue without it.

    It listens on a Unix socket for its owner, and on TCP for those who have a token (`sublet token`).
    """
    if print_unit:
        if database and urlsplit(database).password:
            raise click.UsageError("A unit can be read by everyone: write the database's address into sublet.toml.")
        given = {"--host": host, "--port": port, "--platform": platform, "--database": database}
        given |= {"--config": os.path.abspath(config) if config else None, "--socket": socket}
        options = [word for name, value in given.items() if value is not None for word in (name, str(value))]
        click.echo(make_unit(sublet_home().root, [*options, *(["--gateway"] if gateway else [])]), nl=False)
        return
    against = [] if anyway else objections(probe(sublet_home().root))
    if against:
        raise NotHere(why=against[0].why, advice=against[0].advice)
    _load()
    from sublet.server.server import run

    run(
        ServeOptions(
            host=host,
            port=port,
            platform=platform,
            config=os.path.abspath(config) if config else None,
            gateway=gateway,
            database=database,
            socket=socket,
            personal=personal,
            verbose=out.verbose,
        )
    )


def _load() -> None:
    """Import the whole service, and exempt it from garbage collection, since it is never freed."""
    require_server("`sublet serve`")
    gc.disable()
    import_module("sublet.server.server")
    gc.freeze()
    gc.enable()


def add_directly(config: str | None, address: str, role: str) -> PersonView:
    """Add a person directly to a gateway's database; the service needn't be running."""
    require_server("`sublet person add` without a service")
    from sublet.server.server import add_person

    return add_person(ServeOptions(config=os.path.abspath(config) if config else None), address, role)
