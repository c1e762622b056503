"""What a session's page says of what it runs: the program as it is, and no secret."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sublet.booking.model.request import GIB, Compute, Data, Executable, Range, Request
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.pages.work import LONGEST, describe_work, hide_credentials

CASES = [
    (Executable("command", fields={"argv": ["echo", "a b"]}), ("Command", "echo 'a b'")),
    (Executable("command", fields={"script": "set -e\nmake\n"}), ("Script", "set -e\nmake\n")),
    (
        Executable("docker-container", fields={"image": {"locations": ["docker.io/x:1"]}, "command": ["run", "it"]}),
        ("Image", "docker.io/x:1"),
    ),
    (Executable("jupyter-notebook", fields={"location": "file:/a.ipynb"}), ("Location", "file:/a.ipynb")),
    (Executable("interactive", fields={"interface": "shell"}), ("Interface", "shell")),
    (Executable("app", fields={"app": "flood", "parameters": {"years": 3}}), ("App", "flood")),
    (
        Executable("app", fields={"app": "flood", "pinned": {"repository": "https://h/r", "commit": "c0ffee"}}),
        ("Code", "https://h/r @ c0ffee"),
    ),
]


@pytest.mark.parametrize(("executable", "wanted"), CASES)
def test_every_kind_says_what_it_runs(executable: Executable, wanted: tuple[str, str]) -> None:
    assert wanted in [(part.label, part.text) for part in describe_work(Request(executable))]


def test_values_of_the_environment_and_passwords_in_addresses_are_not_shown() -> None:
    fields = {"script": "true", "environment": {"API": "hunter2"}, "parameters": {"db_password": "hunter2", "n": 1}}
    data = (
        Data("in", "simple-data-resource", "https://me:hunter2@example.org/a.csv"),
        Data("s3", "simple-data-resource", "https://b.example.org/a?X-Amz-Signature=hunter2&x=1"),
    )
    parts = describe_work(Request(Executable("command", fields=fields), data=data))
    assert "hunter2" not in repr(parts)
    assert "API (values are not shown)" in [part.text for part in parts]
    assert "https://…@example.org/a.csv" in [part.text for part in parts]


def test_of_a_lease_only_the_amounts_are_shown() -> None:
    parts = describe_work(Request(Executable("pilot", fields={"passport": "hunter2"})))
    assert [part.label for part in parts] == ["Asked for"]


def test_amounts_are_told_and_a_very_long_program_is_cut() -> None:
    request = Request(
        Executable("command", fields={"script": "x" * (LONGEST + 1)}),
        Compute(nodes=Range(2, 4), cores=Range(8, 8), memory=Range(GIB, 2 * GIB)),
        duration=timedelta(hours=3),
        platform="hpc",
        scheduler=SchedulerOptions(queue="short"),
    )
    script, amounts = describe_work(request)
    assert (script.is_cut, len(script.text)) == (True, LONGEST)
    assert amounts.text == "2–4 nodes, 8 cores, 1 GiB–2 GiB, for 3 h, on hpc, queue short"


@pytest.mark.parametrize("address", ["docker.io/library/alpine", "file:/data/a.csv", "https://h/p?page=2", "[::bad"])
def test_an_address_without_credentials_stays_as_it_is(address: str) -> None:
    assert hide_credentials(address) == address
