"""A real Rucio server on SQLite, on a port of its own, and Rucio's own client to fill it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ports import free_port
from tests.storage_servers import PATIENCE, wait_for

USER, PASSWORD = "marie", "radium-226"
MAKE_DATABASE = """
from rucio.db.sqla.util import build_database, create_base_vo, create_root_account
build_database()
create_base_vo()
create_root_account()
"""
SERVE = """
import sys
from werkzeug.serving import run_simple
from rucio.web.rest.flaskapi.v1.main import application
run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True)
"""
FILL = """
import json, sys
from rucio.client import Client
client = Client()
for name, arguments in json.load(sys.stdin):
    getattr(client, name)(**arguments)
"""
ALEMBIC = """
[alembic]
script_location = {packages}/rucio/db/sqla/migrate_repo
sqlalchemy.url = sqlite:///{home}/rucio.db
[loggers]
keys = root
[handlers]
keys = console
[formatters]
keys = plain
[logger_root]
level = WARN
handlers = console
[handler_console]
class = StreamHandler
args = (sys.stderr,)
formatter = plain
[formatter_plain]
format = %(message)s
"""
SETTINGS = """
[common]
logdir = {home}/log
loglevel = WARNING
[client]
rucio_host = http://127.0.0.1:{port}
auth_host = http://127.0.0.1:{port}
auth_type = userpass
username = {user}
password = {password}
account = root
[database]
default = sqlite:///{home}/rucio.db
[bootstrap]
userpass_identity = {user}
userpass_pwd = {password}
userpass_email = marie@example.org
[policy]
permission = generic
schema = generic
lfn2pfn_algorithm_default = hash
[alembic]
cfg = {home}/etc/alembic.ini
"""


@dataclass(frozen=True)
class RucioServer:
    """One that answers."""

    environment: Path  # where it is installed
    home: Path
    port: int

    @property
    def address(self) -> str:
        """Its host and port."""
        return f"127.0.0.1:{self.port}"

    def run(self, program: str, *words: str, stdin: str = "") -> str:
        """What a program prints in its environment."""
        words = (str(self.environment / "bin" / "python"), "-c", program, *words)
        done = subprocess.run(words, env=self.variables, input=stdin, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    @property
    def variables(self) -> dict[str, str]:
        """What tells its programs where everything is."""
        return {"RUCIO_HOME": str(self.home), "HOME": str(self.home), "PATH": os.environ["PATH"]}

    def fill(self, *calls: tuple[str, dict[str, Any]]) -> None:
        """Call methods of Rucio's own client, one after another."""
        self.run(FILL, stdin=json.dumps(calls))


@contextmanager
def serve_rucio(environment: Path, home: Path) -> Iterator[RucioServer]:
    """A new server with an empty catalogue, and one account, `root`."""
    server = RucioServer(environment, home, free_port())
    packages = next((environment / "lib").glob("python3*/site-packages"))
    (home / "etc").mkdir(parents=True)
    (home / "log").mkdir()
    (home / "etc" / "alembic.ini").write_text(ALEMBIC.format(packages=packages, home=home))
    settings = SETTINGS.format(home=home, port=server.port, user=USER, password=PASSWORD)
    (home / "etc" / "rucio.cfg").write_text(settings)
    server.run(MAKE_DATABASE)
    words = [environment / "bin" / "python", "-c", SERVE, str(server.port)]
    with (home / "log" / "server").open("wb") as log:
        process = subprocess.Popen(words, env=server.variables, stdout=log, stderr=log)
        try:
            wait_for(process, server.port)
            yield server
        finally:
            process.terminate()
            process.wait(PATIENCE)
