"""`sublet rule`, `access` and `audit`, typed by a gateway's operator against the real service."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from sublet.cli.output import table
from tests.cli.conftest import Type, Typed

SETTINGS = """\
mode = "gateway"
[platforms.trial]
kind = "memory"
[platforms.trial.pledges.night]
cores = 4
title = "For the night shift"
"""


@pytest.fixture
def gateway(type_in: Type, tmp_path: Path) -> Iterator[Type]:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "sublet.toml").write_text(SETTINGS)
    yield type_in
    type_in("down")


def tidy(typed: Typed) -> str:
    """What was printed, the same on every day."""
    text = re.sub(r"\b[0-9a-f]{8}\b", "ID", typed.out + typed.err)
    return re.sub(r"today \d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "WHEN", text)


def test_a_rule_about_a_system_can_call_it_a_platform_as_other_commands_do(gateway: Type) -> None:
    same = gateway("rule", "add", "allow", "ben@illinois.edu", "--platform", "trial").out
    assert "allow ben@illinois.edu on system trial" in same


def test_an_operator_bounds_what_a_group_spends(gateway: Type) -> None:
    assert "There are no budgets." in gateway("budget", "list").err
    wrong = gateway("budget", "add", "group:lab", "500")
    assert (wrong.code, "as in 500EUR" in wrong.err) == (2, True), wrong.err
    added = gateway("budget", "add", "group:lab", "500EUR", "--each", "quarter", "--note", "of the grant")
    assert tidy(added) == snapshot("""\
Budget ID is added: group:lab may spend 500 EUR a quarter.
""")
    assert tidy(gateway("budget", "list")) == snapshot("""\
ID        WHO        BUDGET             SPENT  LEFT     NOTE
ID  group:lab  500 EUR a quarter  0 EUR  500 EUR  of the grant
""")
    [id] = gateway("budget", "list", "--quiet").out.split()
    assert "left    500 EUR" in gateway("budget", "show", id[:8]).out
    assert "is removed" in gateway("budget", "remove", id[:8]).out
    assert gateway("budget", "show", id[:8]).code == 1


def test_a_token_for_somebody_of_a_gateway_is_not_said_to_be_for_annexes(gateway: Type) -> None:
    gateway("person", "add", "ben@illinois.edu")
    made = gateway("token", "make", "--person", "ben@illinois.edu")
    assert (made.code, "For ben@illinois.edu" in made.err, "annexes" in made.err) == (0, True, False), made.err


def test_an_operator_makes_rules_tries_them_and_reads_what_was_done(gateway: Type, tmp_path: Path) -> None:
    assert "There are no rules, so nobody can use anything." in gateway("rule", "list").err
    added = gateway(
        *("rule", "add", "allow", "*@Illinois.edu", "--system", "trial", "--cores", "64"),
        *("--hours-month", "9", "--expires", "2099-06-30"),
    )
    assert tidy(added) == snapshot("""\
Rule ID is added: allow *@illinois.edu on system trial.
""")
    gateway("rule", "add", "deny", "eve@illinois.edu", "--system", "*", "--note", "=left in May")
    capped = gateway("rule", "add", "deny", "*", "--system", "trial", "--cores", "32", "--quiet").out.strip()
    assert tidy(gateway("rule", "list")) == snapshot("""\
ID        EFFECT  WHO               WHAT          LIMITS                          EXPIRES     NOTE
ID  allow   *@illinois.edu    system trial  64 cores, 9 core-hours a month  2099-06-30
ID  deny    eve@illinois.edu  system *      -                               -           =left in May
ID  deny    *                 system trial  32 cores                        -
""")
    assert tidy(gateway("rule", "test", "anna@illinois.edu")) == snapshot("""\
NOUN    NAME   MAY  LIMITS                          LEFT          WHY
system  trial  yes  32 cores, 9 core-hours a month  9 core-hours  rule ID allows *@illinois.edu
pledge  night  no   -                               -             no rule allows it; sublet access ask --pledge night --reason TEXT
""")  # noqa: E501
    assert "rule ID denies it (=left in May)" in tidy(gateway("rule", "test", "eve@illinois.edu"))
    assert "no rule allows it; sublet access ask trial --reason TEXT" in gateway("access").out
    assert "who     *\nsystem  trial\nlimits  32 cores\n" in gateway("rule", "show", capped[:8]).out
    wrong = gateway("rule", "add", "allow", "anna@illinois.edu")
    assert (wrong.code, "--app, --place and --project" in wrong.err) == (2, True)
    pledge = gateway("rule", "add", "allow", "*@night.org", "--pledge", "nigh*", "--cores", "2")
    assert "at present" not in pledge.err
    assert gateway("pledge", "list").out == snapshot("""\
PLATFORM  NAME   CORES  TAKEN  FREE  MAY  TITLE
trial     night  4      0      4     no   For the night shift
trial     open   12     0      12    no
""")
    assert tidy(gateway("pledge", "show", "night")) == snapshot("""\
pledge        night
platform      trial
title         For the night shift
size          4 cores
taken now     0 cores
free now      4 cores
made by       the settings
you may       no: no rule allows it
to be let in  sublet access ask --pledge night --reason TEXT
rule          ID allow *@night.org: 2 cores
""")
    assert "There are: night, open." in gateway("pledge", "show", "day").err
    assert "--why" not in gateway("access", "ask", "--help").out, "it still works, and nobody need know"
    assert "You asked for the pledge night" in gateway("access", "ask", "--pledge", "night", "--why", "it is late").out
    gateway("access", "refuse", gateway("access", "list", "--quiet").out.strip())

    asked = gateway("access", "ask", "trial", "--why", "for\n\x1b[2Jthe course")
    assert asked.code == 0
    assert "No operator could be notified by mail" in asked.err
    assert "\x1b" not in gateway("access", "list").out
    assert "asked for" in gateway("access").out
    request = gateway("access", "list", "--quiet").out.strip()
    granted = gateway("access", "grant", request[:8], "--cores", "4", "--expires", "30d", "--answer", "welcome")
    assert "may use the system trial now, by rule" in granted.out
    assert gateway("access", "--quiet").out == "trial\n"
    assert gateway("access", "refuse", request).code == 1
    assert "granted" in gateway("access", "list", "--all").out
    assert gateway("access", "list").err == "No requests for access are open.\n"
    assert gateway("rule", "remove", capped[:8]).out.startswith(f"Rule {capped[:8]} is removed")

    actions = ["rule.add"] * 4 + ["access.ask", "access.refuse", "access.ask", "access.grant", "rule.remove"]
    lines = gateway("audit", "--json").out.splitlines()
    assert [json.loads(line)["action"] for line in lines] == actions
    found = list(csv.DictReader(gateway("audit", "--csv").out.splitlines()))
    assert [row["action"] for row in found] == actions
    assert json.loads(found[0]["detail"])["who"] == "*@illinois.edu"
    assert gateway("audit", "--action", "rule.rem", "--since", "1h").out.count("\n") == 2
    assert gateway("audit", "--until", "2020-01-01").out == "No entries match.\n"
    assert gateway("audit", "--since", "soon").code == 2


def test_what_someone_else_wrote_can_do_nothing_to_a_terminal() -> None:
    assert table(("WHY",), [("a\x1b[2Jb\nc",)]) == ["WHY", "a [2Jb c"]
