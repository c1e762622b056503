"""An operator at a terminal, with the sessions of others: lists, explains, cancels, drains, blocks."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sublet.client import Client
from tests.nursery import typed
from tests.pace import pause
from tests.serving import Serving

SETTINGS = """
mode = "gateway"

[platforms.keeling]
kind = "memory"
nodes = 4
takes = "1h"

[platforms.roger]
kind = "memory"
takes = "1h"
"""
ANNA, BEN = "anna@example.edu", "ben@example.edu"
RUN = ("--image", "docker://busybox", "--time", "1h", "--detach")
PATIENCE = 60.0


def waited(is_so: Callable[[], bool]) -> None:
    """Look until it is so; AssertionError if that doesn't come."""
    deadline = time.monotonic() + PATIENCE
    while True:
        began = time.monotonic()
        if is_so():
            return
        assert began < deadline
        time.sleep(pause(time.monotonic() - began, 0.1))


class Gateway:
    """A gateway, its operator on its own machine, and people with tokens."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.url = home, url
        self.tokens = {"": ""}

    def types(self, *words: str, who: str = "", stdin: str = "") -> tuple[int, str, str]:
        """What the operator, or someone else, types."""
        others = {"SUBLET_URL": self.url, "SUBLET_TOKEN": self.tokens[who]} if who else {}
        own = {name: value for name, value in os.environ.items() if name not in ("SUBLET_URL", "SUBLET_TOKEN")}
        environment = {**own, "SUBLET_HOME": str(self.home), "TZ": "UTC", **others}
        said = typed(words, environment, stdin=stdin, timeout=PATIENCE)
        return said.returncode, said.stdout, said.stderr

    def data(self, *words: str, who: str = "") -> object:
        code, out, err = self.types(*words, "--json", who=who)
        assert code == 0, err
        return json.loads(out)

    def begin(self, who: str, platform: str) -> str:
        """A session of theirs that runs."""
        client = Client(self.url, self.tokens[who])
        session = client.ask(image="docker://busybox", run=["true"], time="1h", platform=platform)[0].accept()
        waited(lambda: client.session(session.id).phase == "RUNNING")
        return session.id


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    home = tmp_path_factory.mktemp("gateway")
    (home / "sublet.toml").write_text(SETTINGS)
    serving = Serving(home, "--port", "0")
    serving.start()
    made = Gateway(home, json.loads((home / "run" / "service.json").read_text())["url"])
    try:
        for who in (ANNA, BEN):
            assert made.types("person", "add", who)[0] == 0
            made.tokens[who] = made.types("token", "make", "--person", who, "--quiet")[1].strip()
        assert made.types("rule", "add", "allow", "*@example.edu", "--system", "*")[0] == 0
        yield made
    finally:
        serving.stop()


def test_ps_lists_everyones_and_ones_own_stays_ones_own(gateway: Gateway) -> None:
    hers, his = gateway.begin(ANNA, "keeling"), gateway.begin(BEN, "roger")
    for words in ([], ["--all"]):
        _, out, err = gateway.types("ps", *words)
        assert (out, "--everyone" in err) == ("", True), err
    code, out, _ = gateway.types("ps", "--everyone")
    assert (code, out.split()[:2]) == (0, ["ID", "PERSON"])
    assert {(line.split()[0], line.split()[1]) for line in out.splitlines()[1:]} >= {(hers[:8], ANNA), (his[:8], BEN)}
    assert gateway.types("ps", "--person", ANNA, "--quiet")[1].split() == [hers[:8]]
    assert gateway.types("ps", "--everyone", "--platform", "roger", "--since", "1h", "--quiet")[1].split() == [his[:8]]
    assert gateway.types("ps", "--everyone", "--until", "1h", "--quiet")[1] == ""
    assert "PERSON" not in gateway.types("ps", who=ANNA)[1]
    for words in (("--everyone",), ("--person", BEN)):
        code, out, err = gateway.types("ps", *words, who=ANNA)
        assert (code, out) == (1, "")
        assert err.startswith("error: Only an operator can list other people's sessions.")
    code, _, err = gateway.types("ps", "--person", "anne@example.edu")
    assert (code, err.splitlines()[0]) == (1, "error: There is no person anne@example.edu.")
    assert gateway.types("ps", "--everyone", "--person", ANNA)[0] == 2
    assert "is RUNNING.\nRunning since" in gateway.types("explain", hers[:8])[1]
    assert ANNA in gateway.types("status", hers[:8])[1]
    assert "accepted" in gateway.types("events", hers[:8])[1]
    code, out, err = gateway.types("logs", hers[:8])
    assert (code, out) == (1, "")
    assert f"Only its owner, {ANNA}, can read" in err
    assert gateway.types("cancel", hers, his, "--reason", "a test is over")[0] == 0
    assert "cancelled by" in gateway.types("explain", hers, who=ANNA)[1]
    assert ": a test is over." in gateway.types("explain", hers, who=ANNA)[1]


def test_several_are_cancelled_after_a_question_that_says_how_many(gateway: Gateway) -> None:
    theirs = [gateway.begin(ANNA, "keeling"), gateway.begin(ANNA, "keeling"), gateway.begin(BEN, "roger")]
    chosen = ("cancel", "--person", ANNA, "--platform", "keeling")
    code, out, err = gateway.types(*chosen, "--dry-run")
    assert (code, out.count(ANNA), err) == (0, 2, "2 sessions would be cancelled.\n")
    code, _, err = gateway.types(*chosen, stdin="n\n")
    assert code == 1
    assert f"Cancel 2 sessions of {ANNA}? [y/N]" in err
    code, _, err = gateway.types(*chosen)
    assert (code, "--yes" in err) == (2, True), "nobody is there to ask"
    assert len(gateway.types("ps", "--everyone", "--phase", "RUNNING", "--quiet")[1].split()) == 3
    code, out, _ = gateway.types("cancel", "--everyone", "--yes", "--reason", "maintenance", "--quiet")
    assert (code, set(out.split())) == (0, {id[:8] for id in theirs})
    waited(lambda: gateway.types("ps", "--everyone", "--phase", "RUNNING", "--quiet")[1] == "")
    assert ": maintenance." in gateway.types("explain", theirs[2], who=BEN)[1]
    code, _, err = gateway.types("cancel", "--everyone", "--platform", "keelign", "--yes")
    assert (code, err.splitlines()[0]) == (1, "error: There is no platform keelign."), "not that nothing runs there"
    assert gateway.types("cancel", "--everyone", "--yes")[2] == "No session under way matches.\n"
    assert gateway.types("cancel", "--person", BEN, who=ANNA)[0] == 1
    for wrong in (("cancel",), ("cancel", theirs[0], "--everyone"), ("cancel", "--everyone", "--phase", "FAILED")):
        assert gateway.types(*wrong)[0] == 2, wrong


def test_a_platform_is_drained_and_everyone_is_told_why(gateway: Gateway) -> None:
    code, out, _ = gateway.types("platform", "drain", "roger", "--until", "2h", "--reason", "new disks")
    assert code == 0
    assert out.startswith("roger is being drained by its operator until ")
    assert "`sublet platform undrain roger` lets it be used again." in out
    for words in (("platform", "list"), ("platform", "show", "roger")):
        assert "draining until" in gateway.types(*words, who=ANNA)[1]
        assert "(new disks); working" in gateway.types(*words, who=ANNA)[1]
    code, out, _ = gateway.types("run", "--platform", "roger", *RUN, "--", "true", who=ANNA)
    assert code == 1
    assert "roger is being drained by its operator until" in out
    assert gateway.types("platform", "undrain", "roger", who=ANNA)[0] == 1
    assert gateway.types("platform", "drain", "roger", "--grace", "5m")[0] == 2
    assert gateway.types("platform", "undrain", "roger")[1] == "roger can be used again.\n"
    assert gateway.types("platform", "undrain", "roger")[2].startswith("error: roger is not being drained.")
    actions = [line.split()[4] for line in gateway.types("audit", "--noun", "platform")[1].splitlines()[1:]]
    assert actions == ["platform.drain", "platform.undrain"]


def test_a_block_names_what_goes_on_or_ends_it(gateway: Gateway) -> None:
    his = gateway.begin(BEN, "keeling")
    shown = gateway.types("person", "show", BEN)[1]
    assert "sessions       1 running, 0 waiting" in shown
    assert "allow *@example.edu on system *" in shown
    assert his[:8] in shown
    code, out, _ = gateway.types("person", "block", BEN, "--reason", "left")
    assert code == 0
    assert out.startswith(f"{BEN} is blocked.\n1 session of theirs goes on:\n")
    assert his[:8] in out
    assert out.endswith(f"This ends them: sublet cancel --person {BEN}\n")
    blocked = gateway.data("person", "block", BEN, "--why", "left", "--cancel")
    assert isinstance(blocked, dict)
    assert blocked["cancelled"] == [his]
    waited(lambda: gateway.types("status", his, "--quiet")[1] == "CANCELLED\n")
    assert gateway.types("person", "block", BEN)[1] == f"{BEN} is blocked.\nThey have nothing under way.\n"


def test_pledges_are_added_changed_and_removed_at_a_terminal(gateway: Gateway) -> None:
    hours = ("--when", "nights, weekends", "--zone", "Europe/London")
    added = gateway.types("pledge", "add", "srcnet", "--platform", "keeling", "--cores", "4", *hours)
    assert added[:2] == (0, "Pledge srcnet of keeling is added: 4 cores, nights, weekends (Europe/London).\n"), added
    changed = gateway.types("pledge", "edit", "srcnet", "--cores", "2", "--memory", "1GiB", "--when", "")
    assert changed[:2] == (0, "Pledge srcnet of keeling is changed: 2 cores, 1GiB of memory.\n"), changed
    shown = gateway.types("pledge", "show", "srcnet")[1]
    assert "an operator" in shown
    code, _, why = gateway.types("pledge", "add", "x", "--platform", "keeling", who=ANNA)
    assert (code, "Only an operator" in why) == (1, True), why
    assert gateway.types("pledge", "edit", "srcnet")[0] == 2, "nothing is said of what is to change"
    removed = gateway.types("pledge", "remove", "srcnet")
    assert removed[1].startswith("Pledge srcnet of keeling is removed"), removed
    assert "srcnet" not in gateway.types("pledge", "list")[1]
