"""Tokens, configuration and answers of HTCondor: pure, with no HTCondor about."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.annexes.pilots.address import can_listen, free_port, is_here, is_portable, towards
from sublet.annexes.pilots.ground import Ground, daemons_configuration, tools_configuration
from sublet.annexes.pilots.keeping import keep, keep_first
from sublet.annexes.pilots.machine import MachineFacts, read_address, schedd_ad
from sublet.annexes.pilots.own import OwnAccessPoint, has_queued
from sublet.annexes.pilots.tokens import POOL, Signer, expiry, identity, issuer, new_key
from sublet.kernel.errors import (
    AccessPointFailed,
    AccessPointRefused,
    AccessPointUnreachable,
    BadToken,
    NoHTCondor,
    NotConfigurable,
)
from sublet.platforms.htcondor import commands as jobs
from sublet.platforms.htcondor import slots
from sublet.platforms.htcondor.configuration import attribute, literal, write_lines
from sublet.platforms.htcondor.release import NEEDED, Release, find_release, release_at
from sublet.platforms.htcondor.tools import Tools, trouble
from sublet.reach.port import Outcome

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
KEY = bytes(range(1, 65))
RELEASE = Release(Path("/usr/bin"), Path("/usr/sbin"), Path("/usr/lib/condor"), Path("/usr/libexec/condor"))
GROUND = Ground("/home/ann/sublet/ap", "/tmp/s", "ann", "ab.sublet", "192.0.2.7", 9618)
TOOLS = Tools(RELEASE, "/home/ann/sublet/ap/tools.conf")


def claims(token: str) -> dict[str, object]:
    middle = token.split(".")[1]
    document: dict[str, object] = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    return document


def test_a_token_says_who_for_how_long_and_what_they_may() -> None:
    token = Signer(KEY, "AP", "ab.sublet").mint("ann@ab.sublet", timedelta(hours=1), NOW, ["READ", "WRITE"])
    assert (identity(token), issuer(token), expiry(token)) == ("ann@ab.sublet", "ab.sublet", NOW + timedelta(hours=1))
    assert claims(token)["scope"] == "condor:/READ condor:/WRITE"
    assert "scope" not in claims(Signer(KEY, POOL, "ab.sublet").mint("ann@ab.sublet", timedelta(hours=1), NOW))


def test_no_two_tokens_are_alike_and_another_key_signs_otherwise() -> None:
    signer = Signer(KEY, "AP", "x")
    one, other = (signer.mint("ann@x", timedelta(hours=1), NOW) for _ in range(2))
    assert claims(one)["jti"] != claims(other)["jti"]
    assert len({name: Signer(KEY, name, "x")._secret() for name in ("AP", POOL)}.values()) == 2


def test_what_is_no_token_is_told_so() -> None:
    for text in ("", "a.b.c", "eyJ.W10.x"):
        with pytest.raises(BadToken):
            expiry(text)


def test_keys_have_no_byte_that_ends_a_text() -> None:
    for _ in range(50):
        key = new_key()
        assert len(key) == 64
        assert 0 not in key
        assert all(key[place] != (0xDE, 0xAD, 0xBE, 0xEF)[place % 4] for place in range(64))


def test_a_value_can_neither_become_a_line_nor_a_macro() -> None:
    with pytest.raises(NotConfigurable):
        write_lines({"START": "True\nALLOW_ADMINISTRATOR = *"})
    assert literal("$(HOME)") == "$(DOLLAR)(HOME)"
    assert attribute('a"b\\$(X)') == '"a\\"b\\\\$(DOLLAR)(X)"'


def test_an_access_point_of_ones_own_takes_tokens_only_and_its_owner_only() -> None:
    text = daemons_configuration(GROUND, RELEASE)
    for line in (
        "SEC_DEFAULT_AUTHENTICATION_METHODS = IDTOKENS",
        "ENABLE_KERNEL_TUNING = False",
        "NETWORK_INTERFACE = 192.0.2.7",
        "BIND_ALL_INTERFACES = False",
        "DAEMON_LIST = MASTER COLLECTOR SCHEDD",
        "ALLOW_WRITE = ann@ab.sublet",
        "ALLOW_ADVERTISE_STARTD = ann@ab.sublet",
        "SEC_READ_AUTHENTICATION = REQUIRED",
        "TCP_KEEPALIVE_INTERVAL = 10",
        "JOB_DEFAULT_LEASE_DURATION = 1200",
    ):
        assert line in text.splitlines(), line
    assert "NEGOTIATOR" not in text.replace("ALLOW_NEGOTIATOR = \n", "")


def test_tools_have_a_place_that_pilots_behind_nat_can_call_back_to() -> None:
    text = tools_configuration(GROUND, RELEASE, "/home/ann/sublet/ap/tools")
    assert "SHARED_PORT_DAEMON_AD_FILE = /home/ann/sublet/ap/lock/shared_port_ad" in text
    assert "SEC_TOKEN_DIRECTORY = $(LOCAL_DIR)/tokens.d" in text


def test_one_behind_another_address_binds_its_own() -> None:
    text = daemons_configuration(Ground("/d", "/s", "ann", "ab", "198.51.100.9", 9618, bind="192.0.2.7"), RELEASE)
    assert "TCP_FORWARDING_HOST = 198.51.100.9" in text
    assert "NETWORK_INTERFACE = 192.0.2.7" in text
    six = daemons_configuration(Ground("/d", "/s", "ann", "ab", "2001:db8::1", 9618), RELEASE)
    assert "COLLECTOR_HOST = [2001:db8::1]:9618" in six


def test_words_carry_the_configuration_and_stay_words() -> None:
    argv = jobs.to_edit(TOOLS, 'Owner == "a b"', {"SubletTarget": '"x; rm -rf /"'}).argv
    assert argv[0] == "env"
    assert "CONDOR_CONFIG=/home/ann/sublet/ap/tools.conf" in argv
    assert argv[-3:] == ('Owner == "a b"', "SubletTarget", '"x; rm -rf /"')


def test_a_submission_is_read() -> None:
    assert jobs.read_submitted("12.0 - 12.49\n") == [(12, 0, 49)]
    assert jobs.read_submitted("3.0\n4.0 - 4.0\n") == [(3, 0, 0), (4, 0, 0)]
    with pytest.raises(AccessPointRefused):
        jobs.read_submitted("Submitting job(s)")


def test_what_a_tool_says_of_its_failure_decides_whether_it_is_tried_again() -> None:
    away = Outcome(1, b"", b"Error: Couldn't contact the condor_collector on 192.0.2.7:9618.\n\nExtra Info: ...")
    assert isinstance(trouble(away), AccessPointUnreachable)
    assert "Extra Info" not in trouble(away).message
    refused = Outcome(1, b"", b"ERROR: Failed to parse command file (line 3).")
    assert isinstance(trouble(refused), AccessPointRefused)
    assert "line 3" in trouble(refused).message


def test_no_job_that_matches_is_no_failure() -> None:
    none = Outcome(1, b"", b"Couldn't find/remove all jobs matching constraint (ClusterId==77)")
    assert jobs.to_remove(TOOLS, "ClusterId==77").reader(none) is False
    edited = Outcome(0, b'Set attribute "Foo" for 3 matching jobs.\n', b"")
    assert jobs.to_edit(TOOLS, "true", {"Foo": "1"}).reader(edited) == 3


def test_an_empty_queue_is_an_empty_answer() -> None:
    assert jobs.to_queue(TOOLS).reader(Outcome(0, b"\n", b"")) == []
    assert jobs.to_queue(TOOLS).reader(Outcome(0, b'[{"ClusterId": 1}]', b"")) == [{"ClusterId": 1}]


def test_jobs_are_named_by_number_only() -> None:
    assert jobs.ids(["12", "13.4"]) == ["(ClusterId==12)||(ClusterId==13&&ProcId==4)"]
    assert len(jobs.ids([str(number) for number in range(450)])) == 3
    with pytest.raises(AccessPointRefused):
        jobs.ids(["1||true"])


def test_a_configuration_is_read_with_what_is_not_defined_left_out() -> None:
    text = "UID_DOMAIN = dept.example\n # at: /etc/condor/config.d/10-ap, line 7\n\n # at: <Default>\n"
    assert slots.read_config(text, ["UID_DOMAIN", "SCHEDD_NAME"]) == {"UID_DOMAIN": "dept.example"}


def test_a_schedds_address_is_read_and_told() -> None:
    text = '<192.0.2.7:9618?sock=s>\n$CondorVersion: 25 $\n$CondorPlatform: X $\nMachine = "m"\nName = "ap.example"\n'
    assert read_address(text) == MachineFacts("<192.0.2.7:9618?sock=s>", "ap.example", "m")
    assert 'MyAddress = "<192.0.2.7:9618?sock=s>"' in schedd_ad(read_address(text))
    with pytest.raises(AccessPointUnreachable):
        read_address("")


def test_an_unpacked_release_is_found_with_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for name in ("sbin/condor_master", "libexec/condor_shared_port", *(f"bin/{name}" for name in NEEDED)):
        program = tmp_path / name
        program.parent.mkdir(exist_ok=True)
        program.touch(0o755)
    (tmp_path / "lib").mkdir()
    found = release_at(tmp_path / "sbin")
    assert found is not None
    assert (found.libexec, found.lib) == (tmp_path / "libexec", tmp_path / "lib")
    assert found.program("condor_master") == str(tmp_path / "sbin/condor_master")
    (tmp_path / "bin/condor_q").unlink()
    assert release_at(tmp_path / "sbin") is None


def test_without_htcondor_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sublet.platforms.htcondor.release._SYSTEM", ())
    with pytest.raises(NoHTCondor) as told:
        find_release(tmp_path)
    assert "annex setup" in told.value.advice


def test_secrets_are_for_their_owner_and_kept_whole(tmp_path: Path) -> None:
    file = tmp_path / "key"
    assert keep_first(file, b"one") == b"one"
    assert keep_first(file, b"two") == b"one"
    assert file.stat().st_mode & 0o777 == 0o600
    keep(file, b"three")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"three", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]


def test_what_was_settled_stays_but_the_address_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    own = OwnAccessPoint(tmp_path / "ap", RELEASE)
    with pytest.raises(AccessPointFailed):
        _ = own.ground
    first = own.settle("127.0.0.1")
    again = own.settle("127.0.0.2", lease=timedelta(minutes=2))
    assert (again.domain, again.port) == (first.domain, first.port)
    assert (again.address, own.ground.lease) == ("127.0.0.2", timedelta(minutes=2))
    keys = [tmp_path / "ap/passwords.d" / name for name in ("POOL", "AP")]
    assert all(key.stat().st_mode & 0o777 == 0o600 for key in keys)
    assert keys[0].read_bytes() != keys[1].read_bytes()


def test_a_queue_with_jobs_is_told_from_one_without() -> None:
    made = [b"101 0.0 Job Machine\n", b"101 01.-1 Job Machine\n", b"101 1.0 Job Machine\n", b'103 1.0 Owner "ann"\n']
    assert has_queued(made)
    assert not has_queued([*made, b"102 1.0\n", b"105\n"])
    assert not has_queued([])


def test_root_is_told_to_be_somebody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(AccessPointFailed) as told:
        OwnAccessPoint(tmp_path / "ap", RELEASE).settle("127.0.0.1")
    assert "ordinary user" in told.value.advice


def test_addresses_and_ports_of_this_machine_are_known() -> None:
    assert towards("127.0.0.1") == "127.0.0.1"
    assert is_here("127.0.0.1")
    assert not is_here("192.0.2.1")
    port = free_port("127.0.0.1")
    assert can_listen("127.0.0.1", port)
    assert is_here(towards("a name of ssh's own"))


def test_a_laptop_is_told_by_its_chassis_or_its_battery(tmp_path: Path) -> None:
    dmi, power = tmp_path / "dmi", tmp_path / "power"
    (power / "BAT0").mkdir(parents=True)
    dmi.mkdir()
    assert not is_portable(dmi, power)
    (power / "BAT0/capacity").write_text("90")
    (power / "BAT0/type").write_text("Battery\n")
    assert is_portable(dmi, power)
    (dmi / "chassis_type").write_text("10\n")
    assert is_portable(dmi, tmp_path / "none")
    (dmi / "chassis_type").write_text("17\n")
    assert not is_portable(dmi, tmp_path / "none")
