"""What a service and a session's virtual machine say to each other is sealed, whole, and told as it was."""

from __future__ import annotations

import base64
import os
import pty
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.job import Job, Program
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.platforms.openstack.guest.console import SealedConsole
from sublet.platforms.openstack.guest.sealed import read_lines, seal, unseal, write_line
from sublet.platforms.openstack.readers import Image, choose_flavor, count_gpus, read_flavor, read_quota
from sublet.platforms.openstack.states import ELSEWHERE, StopWishes, describe_end
from sublet.platforms.openstack.userdata import MOST, GuestTimes, UserDataTooLarge, describe_job, write_user_data

SECRET = b"s" * 32
TIMES = GuestTimes(timedelta(seconds=5), timedelta(hours=1), timedelta(days=1))
LEFT = {"why": "", "killed": 0, "wall": 1.0, "cpu": 0.5, "peak": 10, "pieces": 0}
GIB = 1 << 30


@given(st.binary(max_size=400), st.from_regex(r"[a-z]{1,9}(:[0-9]{1,5}){0,2}", fullmatch=True))
def test_a_piece_is_opened_by_its_secret_and_its_label_alone(content: bytes, label: str) -> None:
    piece = seal(SECRET, label, content)
    assert unseal(SECRET, label, piece) == content
    for secret, named in ((b"t" * 32, label), (SECRET, f"{label}:1")):
        with pytest.raises(ValueError, match="another secret"):
            unseal(secret, named, piece)
    with pytest.raises(ValueError, match="changed"):
        unseal(SECRET, label, piece[:-1] + bytes([piece[-1] ^ 1]))


def test_pieces_are_found_among_what_others_print_and_broken_ones_are_passed_over() -> None:
    good = write_line(SECRET, "stdout:0:5", b"hello").decode()
    forged = write_line(b"x" * 32, "end", b'{"code": 0}').decode()
    cut = write_line(SECRET, "end", b"{}").decode()[:-9]
    console = f"[ 0.1] Linux\r\n{good.replace(chr(10), chr(13) + chr(10))}login: {forged}{cut}\n#sublet end nonsense\n"
    assert read_lines(SECRET, console) == [("stdout:0:5", b"hello")]


def test_a_console_that_a_login_hangs_up_is_opened_again(tmp_path: Path) -> None:
    console = tmp_path / "console"
    (first, first_end), (second, second_end) = pty.openpty(), pty.openpty()
    console.symlink_to(os.ttyname(first_end))
    line = SealedConsole(SECRET, str(console))
    console.unlink()
    console.symlink_to(os.ttyname(second_end))
    os.close(first)  # as vhangup(2) does: every file that is open there answers EIO from now on
    line.tell("beat:1", {"at": 1.0})
    assert read_lines(SECRET, os.read(second, 4096).decode()) == [("beat:1", b'{"at": 1.0}')]
    for file in (first_end, second, second_end, line.file):
        os.close(file)


def job_of(environment: dict[str, str]) -> Job:
    return Job(Program(("true",), environment), Amounts(Shape(1, GIB)), (), datetime.now(UTC), timedelta(0))


def test_user_data_is_a_program_that_says_nothing_of_the_session() -> None:
    described = describe_job(job_of({"TOKEN": "hush-hush"}), "key", TIMES, datetime.now(UTC))
    script = base64.b64decode(write_user_data(described, b"files", SECRET)).decode()
    assert script.startswith("#!/usr/bin/env python3\n")
    compile(script, "user_data", "exec")
    assert "hush-hush" not in script
    assert "sublet.platforms" not in script


def test_user_data_has_a_limit_and_says_how_much_fits() -> None:
    described = describe_job(job_of({}), "key", TIMES, datetime.now(UTC))
    with pytest.raises(UserDataTooLarge) as caught:
        write_user_data(described, os.urandom(MOST), SECRET)
    room = int(str(caught.value).split()[-1])
    assert room > 20_000
    assert len(write_user_data(described, os.urandom(room - 10), SECRET)) <= MOST


@pytest.mark.parametrize(
    ("left", "wishes", "kind", "code", "signal"),
    [
        ({"code": 0}, StopWishes(), EndKind.EXITED, 0, None),
        ({"code": 5}, StopWishes(), EndKind.EXITED, 5, None),
        ({"code": -10}, StopWishes(), EndKind.SIGNALLED, None, 10),
        ({"code": -9, "killed": 1}, StopWishes(), EndKind.OUT_OF_MEMORY, None, None),
        ({"code": 7, "killed": 1}, StopWishes(), EndKind.OUT_OF_MEMORY, 7, None),
        ({"code": 0, "killed": 1}, StopWishes(), EndKind.EXITED, 0, None),
        ({"code": -15, "why": "button"}, StopWishes("marie"), EndKind.CANCELLED, None, None),
        ({"code": -15, "why": "button"}, StopWishes(is_over_time=True), EndKind.TIMEOUT, None, None),
        ({"code": -15, "why": "time"}, StopWishes(), EndKind.TIMEOUT, None, None),
        ({"code": 0}, StopWishes("marie"), EndKind.EXITED, 0, None),
    ],
)
def test_an_end_is_told_as_the_machine_told_it(
    left: dict[str, object], wishes: StopWishes, kind: EndKind, code: int | None, signal: int | None
) -> None:
    end = describe_end({**LEFT, **left}, {}, wishes)
    assert (end.kind, end.code, end.signal) == (kind, code, signal)


def test_a_machine_that_someone_else_stops_and_a_kinds_own_words_are_told() -> None:
    assert describe_end({**LEFT, "code": -15, "why": "button"}, {}, StopWishes()).by == ELSEWHERE
    end = describe_end({**LEFT, "code": 1}, {"unstarted": 'not-started\n"no kernel"'}, StopWishes())
    assert (end.kind, end.detail) == (EndKind.NOT_STARTED, "no kernel")


def test_the_least_flavor_that_is_enough_is_chosen_and_gpus_are_counted() -> None:
    small = read_flavor({"id": "1", "vcpus": 1, "ram": 1024, "disk": 10}, {})
    large = read_flavor({"id": "2", "vcpus": 8, "ram": 65536, "disk": 40}, {})
    gpu = read_flavor({"id": "3", "vcpus": 8, "ram": 65536, "disk": 40}, {"pci_passthrough:alias": "gpu-a100:2"})
    flavors = [gpu, large, small]
    image = Image("i", "image", least_disk=5 * GIB)
    assert choose_flavor(flavors, Shape(1, GIB // 2), image, GIB // 4) == small
    assert choose_flavor(flavors, Shape(1, GIB), image, GIB // 4) == large
    assert choose_flavor(flavors, Shape(1, GIB, 1), image, 0) == gpu
    assert choose_flavor(flavors, Shape(9, GIB), image, 0) is None
    assert gpu.gpu_types == ("gpu-a100",)
    assert "2 GPUs (gpu-a100)" in gpu.describe()
    assert count_gpus({"resources:VGPU": "2", "resources1:CUSTOM_GPU_H100": "1", "resources:VCPU": "4"}) == 3


def test_a_quota_without_a_limit_has_room() -> None:
    quota = read_quota({"limits": {"absolute": {"maxTotalCores": -1, "maxTotalRAMSize": 1024, "totalRAMUsed": 512}}})
    assert quota.cores > 1 << 30
    assert (quota.memory, quota.memory_used) == (GIB, GIB // 2)
