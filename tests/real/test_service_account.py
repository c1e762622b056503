"""A service account gets in by a key or a certificate, by itself; nobody is asked, and a gateway takes nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.app import open_service
from sublet.kernel.errors import AccountRefused, LoginNeeded, NoOwnLogins, NotFound
from sublet.kernel.settings import Settings
from sublet.kernel.short_paths import shorten
from sublet.people.model.person import Person
from sublet.reach.login import Login
from sublet.reach.port import Command, read_printed
from sublet.reach.unattended import UnattendedReach, by_key
from tests.sites import Site
from tests.sshd import Sshd, make_key, needs_sshd, sshd

pytestmark = [pytest.mark.anyio, needs_sshd]
HELLO = Command(("echo", "hello"), read_printed)
OVER = "20200101000000:20200102000000"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    """A host that knows its users by the certificates of one authority."""
    with sshd(tmp_path / "sshd") as started:
        make_key(started.directory / "ca")
        started.settings |= {"AuthorizedKeysFile": "none", "TrustedUserCAKeys": f"{started.directory}/ca.pub"}
        started.stop()
        started.start()
        yield started


def certify(server: Sshd, validity: str) -> None:
    words = ["ssh-keygen", "-q", "-s", server.directory / "ca", "-I", "id", "-n", server.user, "-V", validity]
    subprocess.run([*words, server.directory / "key.pub"], check=True, env={**os.environ, "TZ": "UTC"})


def login_to(server: Sshd, tmp_path: Path, key: str = "") -> Login:
    options = server.options | (by_key(key) if key else {})
    return Login("127.0.0.1", control=tmp_path / "run", platform="far", port=server.port, options=options)


@pytest.fixture
async def reach(server: Sshd, tmp_path: Path) -> AsyncIterator[UnattendedReach]:
    key = str(server.directory / "key")
    way = UnattendedReach(login_to(server, tmp_path, key), key)
    yield way
    await way.close()


def tries(server: Sshd) -> int:
    """How often the host was bothered."""
    return (server.directory / "sshd.log").read_text().count(f"user {server.user}")


async def test_a_certificate_lets_it_in_by_itself_and_again_when_the_login_has_lapsed(
    server: Sshd, tmp_path: Path, reach: UnattendedReach
) -> None:
    certify(server, "-1m:+12h")
    assert await reach.run(HELLO) == "hello\n"
    record = await login_to(server, tmp_path).open()
    os.kill(record.pid, signal.SIGKILL)
    assert await reach.run(HELLO) == "hello\n"


async def test_a_certificate_that_has_expired_is_told_with_its_date_and_a_new_one_is_taken_at_once(
    server: Sshd, reach: UnattendedReach
) -> None:
    certify(server, OVER)
    for _ in range(2):
        with pytest.raises(AccountRefused, match="expired on 2020-01-02 00:00 UTC") as refused:
            await reach.run(HELLO)
    assert f"{server.directory}/key-cert.pub" in refused.value.advice
    assert tries(server) == 0
    certify(server, "-1m:+12h")
    assert await reach.run(HELLO) == "hello\n"


async def test_a_key_that_is_refused_is_not_shown_again_and_again(server: Sshd, reach: UnattendedReach) -> None:
    for _ in range(3):
        with pytest.raises(AccountRefused, match="Permission denied"):
            await reach.run(HELLO)
    assert tries(server) == 1
    certify(server, "-1m:+12h")
    assert await reach.run(HELLO) == "hello\n"


async def test_a_host_that_nobody_has_confirmed_gets_nothing(server: Sshd, reach: UnattendedReach) -> None:
    certify(server, "-1m:+12h")
    (server.directory / "known_hosts").unlink()
    with pytest.raises(AccountRefused, match="was not confirmed") as refused:
        await reach.run(HELLO)
    assert "known_hosts" in refused.value.advice


async def test_a_persons_certificate_that_has_expired_is_told_with_its_date_when_a_login_is_needed(
    server: Sshd, tmp_path: Path
) -> None:
    login = login_to(server, tmp_path)
    certify(server, f"20200101000000:{datetime.now(UTC) + timedelta(hours=12):%Y%m%d%H%M%S}")
    with pytest.raises(LoginNeeded, match="Sign in to far first"):
        await login.reach.run(HELLO)
    certify(server, OVER)
    with pytest.raises(LoginNeeded, match="expired on 2020-01-02") as needed:
        await login_to(server, tmp_path).reach.run(HELLO)
    assert needed.value.advice.endswith("sublet system login far")


async def test_a_gateway_has_service_accounts_and_takes_nobodys_login(site: Site, tmp_path: Path) -> None:
    known = {"UserKnownHostsFile": site.facts["known_hosts"], "HostKeyAlias": site.name}
    there = {"kind": "slurm", "host": site.host, "ssh": known}
    account = there | {"user": "service", "key": str(site.key)}
    (tmp_path / "home" / "systems").mkdir(parents=True)
    lines = f"title: x\nlogin: {{hosts: [{site.host}]}}\nscheduler: {{kind: slurm}}\nuser: "
    (tmp_path / "home" / "systems" / "own.yaml").write_text(f"{lines}researcher\n")
    ours = f"{lines}service\nkey: {site.key}\nssh: {{UserKnownHostsFile: {site.facts['known_hosts']}}}\n"
    (tmp_path / "home" / "systems" / "ours.yaml").write_text(ours)
    named = {"account": account, "person": there | {"user": "researcher"}}
    settings = Settings(home=tmp_path / "home", mode="gateway", platforms=named)
    async with open_service(settings, loop=False) as service:
        assert set(service.platforms.by_name) == {"account", "ours"}
        owner = Person("owner", operator=True)
        for name in service.platforms.by_name:
            state = await service.usable_platforms.platform(name, owner)
            assert state.survey is not None, state.trouble
        assert "service account" in service.platforms.broken["person"]
        assert "service account" in service.platforms.broken["system own"]
        assert service.logins.logins() == set()
        with pytest.raises(NoOwnLogins):
            await service.logins.sign_in("account", owner)
        with pytest.raises(NotFound):
            await service.logins.sign_in("person", owner)
    place = shorten(tmp_path / "home" / "run" / "ssh")
    assert not place.exists() or not list(place.iterdir())
