"""`doctor`'s checks of the running service and its platforms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from sublet.booking.calls.health import health
from sublet.booking.calls.platforms import platforms
from sublet.booking.views.health import HealthView
from sublet.booking.views.platforms import PlatformView
from sublet.cli.doctor.findings import DoctorFinding
from sublet.cli.doctor.home import can_be_written
from sublet.cli.doctor.settings import is_gateway
from sublet.cli.texts import away
from sublet.client.address import Address, find_address
from sublet.client.link import Link
from sublet.client.versions import RESTART, compare
from sublet.kernel.errors import SubletError
from sublet.kernel.extras import has_server
from sublet.kernel.home import Home
from sublet.kernel.version import VERSION
from sublet.people.calls.people import whoami

PATIENCE = 20.0  # seconds: a service that takes longer to answer isn't working


def service(home: Home) -> Iterator[DoctorFinding]:
    """Check the service, the caller's identity and the platforms; a service that isn't running isn't started."""
    address = find_address()
    link = Link(replace(address, home=None))
    try:
        view = link.do(replace(health(), patience=PATIENCE))
    except SubletError as error:
        yield _describe_missing_service(home, address, error)
        return
    yield _version(view, address)
    if view.problem:
        yield DoctorFinding("bad", "service", view.problem, "It retries automatically once that is fixed.")
    if view.clock:
        kept = "Nothing need be done: sessions here last as long as before, and times that were asked for stay."
        yield DoctorFinding("warn", "clock", f"this machine's clock was {view.clock}", kept)
    if view.database not in ("", f"sqlite:///{home.database}"):
        yield DoctorFinding("ok", "its database", view.database)
    try:
        yield DoctorFinding("ok", "you are", link.do(whoami()).person)
        now = datetime.now(UTC)
        for platform in link.do(platforms(anew=True)).items:
            yield judge(platform, now)
            notes = (note for note in platform.notes if note != platform.trouble)
            yield from (DoctorFinding("ok", f"on {platform.name}", note) for note in notes)
    except SubletError as error:
        yield DoctorFinding("bad", "service", error.message, error.advice)


def _describe_missing_service(home: Home, address: Address, error: SubletError) -> DoctorFinding:
    if address.home is None:
        return DoctorFinding("bad", "service", error.message, error.advice)
    if isinstance(error.__cause__, TimeoutError):
        return DoctorFinding("bad", "service", f"it runs, and does not answer within {PATIENCE:.0f} s", RESTART)
    if not has_server():
        return DoctorFinding("warn", "service", "only the client is installed", "pip install 'sublet[server]'")
    if is_gateway(home):
        return DoctorFinding(
            "bad", "service", "the gateway is not running", "Start it: systemctl start sublet, or: sublet up"
        )
    if not can_be_written(home):
        return DoctorFinding("bad", "service", "not running; it can't start before SUBLET_HOME can be written")
    return DoctorFinding("ok", "service", "not running; it starts when needed")


def _version(view: HealthView, address: Address) -> DoctorFinding:
    facts = f"{view.mode}, version {view.version}, {address.text}"
    if not compare(view.version):
        return DoctorFinding("ok", "service", facts)
    if address.home is not None:
        return DoctorFinding("warn", "service", f"{facts}; this command is {VERSION}", RESTART)
    return DoctorFinding("warn", "service", f"{facts}; this command is {VERSION}", "Install the same version here.")


def judge(platform: PlatformView, now: datetime) -> DoctorFinding:
    """Return the finding for a platform: whether it works, and what to do if not."""
    what = f"platform {platform.name}"
    seen = f"; what is known was seen {away(platform.as_of, now)}" if platform.as_of else ""
    if platform.ask:
        return DoctorFinding("ok", what, platform.problem, platform.ask)
    if platform.kind == "broken":
        noun, _, system = platform.name.partition(" ")
        if noun == "system":
            return DoctorFinding("bad", platform.name, platform.problem, f"Mend it: sublet system edit {system}")
        return DoctorFinding("bad", what, platform.problem, "Mend its settings, then restart.")
    if platform.needs_login:
        login = f"sublet system login {platform.name}"
        return DoctorFinding("warn", what, f"{platform.kind}, nobody is signed in{seen}", login)
    if not platform.working:
        return DoctorFinding("bad", what, platform.problem, f"sublet platform check {platform.name}")
    if platform.trouble:
        return DoctorFinding("bad", what, f"{platform.kind}, can't be asked: {platform.trouble}")
    return DoctorFinding("ok", what, platform.kind)
