"""Several service processes on one PostgreSQL share the work by claims, and none of it is done twice."""

from __future__ import annotations

from pathlib import Path

from sublet.client import Client
from tests.postgres import Postgres
from tests.serving import Serving, eventually

SESSIONS = 24


def sharing(home: Path, name: str, database: str) -> Serving:
    """One of several services with the same home and database, each on its own socket."""
    socket = home.parent / f"{name}.sock"
    config = home.parent / "sublet.toml"
    config.write_text('[platforms.here]\nkind = "local"\ncores = 64\nmemory = "64GiB"\n')
    options = ("--database", database, "--socket", str(socket), "--config", str(config))
    return Serving(home, *options, socket=socket, log=home.parent / f"{name}.log")


def test_two_services_share_what_is_to_be_done_and_one_takes_over_from_the_other(
    tmp_path: Path, postgres: Postgres
) -> None:
    database = postgres.create()
    witness = tmp_path / "witness"
    witness.mkdir()
    home = tmp_path / "home"
    first, second = (sharing(home, name, database) for name in ("first", "second"))
    try:
        clients: list[Client] = [first.start(), second.start()]
        ids = []
        for number in range(SESSIONS):
            command = ["sh", "-c", f"echo $$ >> {witness}/{number}; sleep 0.3"]
            offer = clients[number % 2].ask(run=command, time="5m", cores=1, memory="64MiB")[0]
            ids.append(clients[(number + 1) % 2].session(offer.id).accept().id)
        first.kill()
        for id in ids:
            ended = clients[1].session(id).wait(timeout=60)
            assert (ended.phase, ended.end.code) == ("COMPLETED", 0)
        runs = {number: (witness / str(number)).read_text().splitlines() for number in range(SESSIONS)}
        assert {number: len(lines) for number, lines in runs.items()} == dict.fromkeys(range(SESSIONS), 1)
        eventually(lambda: "session.submitted" in second.log(), "a share of the second's")
    finally:
        first.stop()
        second.stop()
