"""`backup` and `restore`: a service's state as one file."""

from __future__ import annotations

from pathlib import Path

import click

from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.cli.texts import size
from sublet.kernel.extras import require_server
from sublet.kernel.home import sublet_home
from sublet.kernel.texts import count_text

CONFIG = click.option("--config", type=click.Path(exists=True, dir_okay=False), help="The service's settings file.")
FILE = click.Path(dir_okay=False)


@command("backup", "sublet backup /var/backups/sublet-2026-11-16.tar.gz")
@click.argument("file", type=FILE)
@CONFIG
def backup(out: Output, file: str, config: str | None) -> None:
    """Write a backup of the service on this machine to FILE. The service may go on running.

    It has the database, the settings and the keys of SUBLET_HOME, for its owner alone (0600). Session directories,
    logs and the master key are not in it.
    """
    require_server("`sublet backup`")
    from importlib.metadata import version

    from sublet.kernel.db.backups import make_backup

    to, home, given = Path(file).absolute(), sublet_home(), Path(config) if config else None
    manifest = make_backup(home, _database(home.root, given), to, version("sublet"), given)
    bytes_, files = to.stat().st_size, count_text(len(manifest.files), "file")
    out.show(
        {"file": str(to), "size": bytes_, "sessions": manifest.sessions, "files": len(manifest.files)},
        lambda: [f"{to} has {count_text(manifest.sessions, 'session')} and {files}, {size(bytes_)}."],
        lambda: [str(to)],
    )


@command("restore", "sublet restore /var/backups/sublet-2026-11-16.tar.gz")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--replace", is_flag=True, help="Also where there is something: it is moved aside, and kept.")
@CONFIG
def restore(out: Output, file: str, replace: bool, config: str | None) -> None:
    """Restore a backup into SUBLET_HOME. The service must not be running.

    FILE is checked first, and restored completely or not at all. It can also be a copy of the database alone, as in
    SUBLET_HOME/backups.
    """
    require_server("`sublet restore`")
    from sublet.kernel.db.backups import restore_backup

    home = sublet_home()
    given = Path(config) if config else None

    def find_database(settings: Path | None) -> str:
        return _database(home.root, given or settings)

    manifest, aside = restore_backup(home, find_database, Path(file).absolute(), replace=replace)
    out.show(
        {"home": home.root, "sessions": manifest.sessions, "created": manifest.created, "replaced": aside or None},
        lambda: [f"{home.root} is as it was at {manifest.created}, with {count_text(manifest.sessions, 'session')}."],
        lambda: [home.root],
    )
    if aside:
        out.note(f"What was there before is in {aside}.")


def _database(home: str, config: Path | None) -> str:
    from sublet.kernel.settings import Settings

    return Settings.load(Path(home), config).database_url
