"""`booking claim` and `booking release` on a gateway of its own: an organiser, and two people of a group."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_gateway import Someone
from tests.iam import iam_server
from tests.serving import Serving
from tests.smtp import Mailbox

AUDIENCE = "https://gateway.example.org"
SETTINGS = """\
mode = "gateway"
[platforms.room]
kind = "memory"
nodes = 3
cores = 4
[issuers.iam]
issuer = "{issuer}"
audiences = ["{audience}"]
"""
WORKSHOP = ("--every", "daily 09:00-10:00 UTC", "--count", "2", "--seats", "3", "--for-group", "iam:/course")
WHAT = ("--cores", "4", "--image", "docker://busybox", "--name", "workshop", "--yes", "--", "true")


class Member(Someone):
    """Someone whom the IAM knows, at a terminal."""

    def __init__(self, home: Path, url: str, token: str) -> None:
        """Commands go to the gateway, with their token."""
        super().__init__(home, Mailbox())
        self.environment |= {"SUBLET_URL": url, "SUBLET_TOKEN": token, "TZ": "UTC"}

    def gets(self, *words: str) -> str:
        """What a command that works prints."""
        done = self.types(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def coming(self) -> list[str]:
        """Their sessions that are still to come."""
        sessions = json.loads(self.gets("ps", "--json"))["items"]
        return [session["id"] for session in sessions if session["phase"] in ("ACCEPTED", "WAITING")]

    def refused(self, *words: str) -> str:
        """What a command says that does not work."""
        done = self.types(*words)
        assert done.returncode == 1, done.stdout
        return done.stderr


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    """Prof, and ann and bob, who are in the group; eve, who is not."""
    place = tmp_path_factory.mktemp("workshop")
    home = place / "gateway"
    home.mkdir(mode=0o700)
    with iam_server() as iam:
        (home / "sublet.toml").write_text(SETTINGS.format(issuer=iam.issuer, audience=AUDIENCE))
        serving = Serving(home, "--port", "0")
        serving.start()
        try:
            url = json.loads((home / "run" / "service.json").read_text())["url"]
            allowed = Someone(home, Mailbox()).types("rule", "add", "allow", "*", "--system", "room")
            assert allowed.returncode == 0, allowed.stderr
            groups = {"prof": ["/staff"], "ann": ["/course"], "bob": ["/course"], "eve": ["/staff"]}
            yield {
                name: Member(place / name, url, iam.token(f"u-{name}", **who(name, of))) for name, of in groups.items()
            }
        finally:
            serving.stop()


def who(name: str, groups: list[str]) -> dict[str, object]:
    """What the IAM says of someone."""
    return {"aud": AUDIENCE, "email": f"{name}@x.org", "email_verified": True, "groups": groups}


@pytest.fixture
def workshop(people: dict[str, Member]) -> Iterator[str]:
    """Three seats on two days, which prof has booked."""
    for member in ("ann", "bob"):
        people[member].gets("whoami")  # the gateway has seen them, with their group
    booking = people["prof"].gets("booking", "create", "--quiet", *WORKSHOP, *WHAT).strip()
    yield booking
    people["prof"].gets("booking", "cancel", booking)
    for member in ("ann", "bob"):
        for session in people[member].coming():
            people[member].gets("cancel", session)


def read_seats(shown: str) -> list[tuple[str, ...]]:
    """State, count and taker of each line of a booking's times."""
    return sorted(
        (match[1], match[2], match[3] or "")
        for line in shown.splitlines()
        if (match := re.search(r"09:00-10:00 +(\w+) +(\d+) .*?(\w+@x\.org)?\s*$", line))
    )


def test_each_of_two_members_takes_seats_of_their_own_and_the_organiser_sees_whose(
    people: dict[str, Member], workshop: str
) -> None:
    prof, ann, bob = (people[name] for name in ("prof", "ann", "bob"))
    open_to_ann = ann.types("booking", "list").stderr
    assert re.search(rf"{workshop} +workshop .* prof@x\.org +6\n", open_to_ann), open_to_ann
    assert workshop not in people["eve"].types("booking", "list").stderr
    ann.gets("booking", "claim", workshop)
    day = re.search(r"\d{4}-\d\d-\d\d", prof.gets("booking", "show", workshop))
    assert day
    bob.gets("booking", "claim", workshop, day[0])
    assert len(ann.coming()) == 2, "one at each time, as sessions of her own"
    assert len(bob.coming()) == 1, "one of the day that he named"
    seats = read_seats(prof.gets("booking", "show", workshop))
    assert seats == sorted(
        [("booked", "1", "ann@x.org")] * 2 + [("booked", "1", "bob@x.org"), ("booked", "1", ""), ("booked", "2", "")]
    )
    assert re.search(rf"{workshop} .* 3\n", bob.types("booking", "list").stderr), "three are free"


def test_seats_that_nobody_took_are_given_back_and_those_that_were_taken_stay(
    people: dict[str, Member], workshop: str
) -> None:
    prof, ann, bob = (people[name] for name in ("prof", "ann", "bob"))
    ann.gets("booking", "claim", workshop)
    assert "error: " in bob.refused("booking", "release", workshop), "only who made it gives seats back"
    seats = read_seats(prof.gets("booking", "release", workshop))
    assert seats == [("booked", "1", "ann@x.org")] * 2 + [("released", "2", "")] * 2
    assert len(ann.coming()) == 2
    refused = bob.refused("booking", "claim", workshop)
    assert refused.startswith(f"error: There is no booking {workshop}."), (
        "without free seats it is shown to nobody else"
    )


def test_who_is_not_in_the_group_gets_no_seat(people: dict[str, Member], workshop: str) -> None:
    refused = people["eve"].refused("booking", "claim", workshop)
    assert refused.startswith("error: "), refused
    assert people["eve"].coming() == []
