"""What a pilot is given: for one node of one lease, under its owner's orders alone."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.annexes.pilots.access_point import STEADY_LEASE
from sublet.annexes.pilots.bundle import Calling, PilotPlan, bundle, changeable, configuration, far, renewal, stamp_of
from sublet.annexes.pilots.keys import order_token, pilot_key
from sublet.annexes.pilots.own import Contact
from sublet.annexes.pilots.tokens import identity, issuer, usable_key

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
LIFE = timedelta(hours=1)
TO = Contact("192.0.2.7:9618", "sublet@ab.sublet", "ann@ab.sublet")
PLAN = PilotPlan("an-annex", "a-lease", 1, False, timedelta(minutes=5), timedelta(hours=2), TO)
CALLING = Calling(("https://192.0.2.7:9718",), "pin=", "its secret", timedelta(seconds=10))


def unpacked(made: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        assert {entry.mode for entry in archive} <= {0o600, 0o700}
        files = [entry for entry in archive if entry.isfile()]
        return {entry.name: archive.extractfile(entry).read() for entry in files}  # type: ignore[union-attr]


def lines(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition(" = ") for line in text.splitlines())}


def test_a_bundle_has_all_that_a_pilot_needs_and_its_secrets_only_where_they_belong() -> None:
    files = unpacked(bundle(PLAN, CALLING, {"pilot": "a-token"}, b"k" * 64, "stamp", ("sh", "git")))
    assert {"pilot.sh", "ask.sh", "values", "condor_config", "annex.conf", "stamp"} <= set(files)
    assert [name for name, content in files.items() if b"a-token" in content] == ["tokens.d/pilot"]
    assert [name for name, content in files.items() if b"k" * 64 in content] == ["passwords.d/POOL"]
    assert [name for name, content in files.items() if b"its secret" in content] == ["values"]


def test_a_pilot_takes_jobs_of_its_annex_alone_unless_it_is_open() -> None:
    values = lines(configuration(PLAN))
    assert "TARGET.SubletTarget =?= MY.SubletAnnex" in values["START"]
    assert values["SubletAnnex"] == '"an-annex"'
    assert values["STARTD_DIRECT_ATTACH_SCHEDD_NAME"] == TO.schedd
    assert values["CCB_ADDRESS"] == "$(COLLECTOR_HOST)"


def test_a_pilot_follows_the_orders_of_who_has_its_own_key() -> None:
    values = lines(configuration(PLAN))
    token = order_token(b"the service's secret", PLAN.lease, PLAN.number, NOW)
    assert values["ALLOW_ADMINISTRATOR"] == identity(token)
    assert values["TRUST_DOMAIN"] == issuer(token)
    other = lines(configuration(replace(PLAN, number=0)))
    assert other["TRUST_DOMAIN"] != values["TRUST_DOMAIN"]


def test_a_job_says_that_it_lives_so_often_that_its_lease_decides_when_it_is_given_up() -> None:
    values = lines(configuration(PLAN))
    often, longest = (int(values[name]) for name in ("STARTER_UPDATE_INTERVAL", "STARTER_UPDATE_INTERVAL_MAX"))
    assert often == longest, "HTCondor gives a starter up that said nothing for three of the longest"
    assert timedelta(seconds=3 * longest) < STEADY_LEASE


def test_a_pilots_key_is_its_own_and_always_the_same() -> None:
    keys = {pilot_key(b"secret", "a-lease", number) for number in range(50)}
    assert len(keys) == 50
    assert all(usable_key(key) and len(key) == 64 for key in keys)
    assert pilot_key(b"secret", "a-lease", 7) in keys
    assert pilot_key(b"another", "a-lease", 7) not in keys


def test_a_pilot_is_told_anew_when_something_changed_or_its_tokens_age() -> None:
    before = stamp_of(PLAN, NOW, LIFE)
    assert stamp_of(PLAN, NOW + timedelta(minutes=5), LIFE) == before
    assert stamp_of(PLAN, NOW + LIFE, LIFE) != before
    opened = replace(PLAN, open=True)
    assert stamp_of(opened, NOW, LIFE) != before
    files = unpacked(renewal(opened, {"pilot": "new"}, "s"))
    assert set(files) == {"tokens.d/pilot", "annex.conf", "stamp"}
    assert b"SubletOpen = True" in files["annex.conf"]


@pytest.mark.parametrize(("lifetime", "margin"), [(timedelta(hours=2), 60), (timedelta(minutes=2), 15)])
def test_jobs_are_let_go_of_before_the_time_is_over(lifetime: timedelta, margin: int) -> None:
    assert replace(PLAN, lifetime=lifetime).margin.total_seconds() == margin


@pytest.mark.parametrize("sh", ["dash", "bash"])
@pytest.mark.parametrize("adds", ["sbin", "bin"])
def test_a_node_that_has_htcondor_as_a_module_uses_that_if_it_is_new_enough(sh: str, adds: str, tmp_path: Path) -> None:
    for name, version in (("htcondor", "9.0.1"), ("condor", "25.14.1")):
        for program in ("sbin/condor_master", "sbin/condor_startd", "libexec/condor_shared_port", "bin/condor_q"):
            file = tmp_path / name / program
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"#!/bin/sh\necho '$CondorVersion: {version} 2026-11-01 $'\n")
            file.chmod(0o700)
    functions = far("pilot").decode().partition("# HTCondor\n")[2].partition("choose() {")[0]
    module = f'module() {{ [ -d "$here/$2" ] && PATH="$here/$2/{adds}:$PATH"; }}'
    said = 'module_of && echo "$name $version ${root#"$here/"} ${libexec#"$here/"}"'
    words = [sh, "-c", f"{functions}\nhere=$1 oldest=24\n{module}\n{said}", sh, str(tmp_path)]
    tools = tmp_path / "tools" / "bin"
    tools.mkdir(parents=True)
    for tool in ("sh", "sed", "tr"):
        (tools / tool).symlink_to(shutil.which(tool) or "")
    done = subprocess.run(words, capture_output=True, text=True, executable=shutil.which(sh), env={"PATH": str(tools)})
    assert done.stdout == "condor 25.14.1 condor condor/libexec\n", done.stderr


@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_the_script_can_be_read_by_every_shell(sh: str, tmp_path: Path) -> None:
    for name in ("pilot", "fetch_kept", "fetch_web"):
        assert subprocess.run([sh, "-n"], input=far(name), capture_output=True).stderr == b""


def test_a_node_is_one_slot_that_is_cut_up_or_several_of_equal_size() -> None:
    names = ("NUM_SLOTS_TYPE_1", "SLOT_TYPE_1", "SLOT_TYPE_1_PARTITIONABLE")
    one, four = lines(configuration(PLAN)), lines(configuration(replace(PLAN, slots=4)))
    assert [one[name] for name in names] == ["1", "100%", "True"]
    assert [four[name] for name in names] == ["4", "1/4", "False"]


def test_a_node_that_is_drained_takes_nothing_new_and_ends_as_soon_as_it_is_idle() -> None:
    assert "MY.SubletDraining =!= True" in lines(configuration(PLAN))["START"]
    before, after = lines(changeable(PLAN)), lines(changeable(replace(PLAN, draining=True)))
    assert (before["SubletDraining"], before["STARTD_NOCLAIM_SHUTDOWN"]) == ("False", "300")
    assert (after["SubletDraining"], after["STARTD_NOCLAIM_SHUTDOWN"]) == ("True", "2")
    assert "STARTD_DIRECT_ATTACH_SCHEDD_NAME" in after
    assert "STARTD_DIRECT_ATTACH_SCHEDD_NAME" not in before


def test_lines_of_the_systems_file_are_fetched_and_say_nothing_over_sublets_own() -> None:
    added = replace(PLAN, lines=(" STARTER_DEBUG = D_FULLDEBUG ",))
    text = changeable(added)
    assert text.startswith("STARTER_DEBUG = D_FULLDEBUG\n")
    assert text.endswith(changeable(PLAN))
    assert stamp_of(added, NOW, LIFE) != stamp_of(PLAN, NOW, LIFE), "pilots that run hear of a change"


def test_a_job_whose_line_was_not_yet_read_does_not_run_on_an_annex_that_is_open() -> None:
    start = lines(configuration(PLAN))["START"]
    assert "TARGET.AnnexName =?= undefined" in start
    assert "TARGET.TargetAnnexName =?= undefined" in start
