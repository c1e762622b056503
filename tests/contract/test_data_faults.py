"""What goes wrong with a session's data is the reason of its end, and leaves nothing half and nothing behind."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind, Session
from sublet.service import Service
from tests.contract.far_system import content_of, open_platform
from tests.contract.services import ME, ask, over, serving
from tests.contract.test_data_cache import bring
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
MIB = 1 << 20
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


def pack(*members: tuple[str, bytes, str]) -> bytes:
    """An archive: of each its name, its type, and where it leads."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, type, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = type, link
            info.size = 2 * MIB if type == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    return buffer.getvalue()


# A fault → how the server behaves, what the request says, and the words of the reason.
FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "gone": ({"code": 404}, {}, "404"),
    "forbidden": ({"code": 403}, {}, "403 Forbidden"),
    "loop": ({"location": "/loop"}, {}, "leads on and on"),
    "shorter": ({"promised": MIB + 1000}, {}, f"{MIB} of {MIB + 1000} bytes came"),
    "half": (
        {"cut_at": MIB // 2, "cuts": 1000, "knows_ranges": False},
        {},
        f"(5 tries, {MIB // 2} of {MIB} bytes came)",
    ),
    "checksum": ({}, {"checksum": f"sha256:{'0' * 64}"}, "its checksum is sha256:"),
    "size": ({}, {"size": "5 B"}, "5 were expected"),
}
HARM: dict[str, tuple[bytes, str]] = {
    "up": (pack(("../x", tarfile.REGTYPE, "")), "can't be used here"),
    "newline": (pack(("a\nb", tarfile.REGTYPE, "")), "can't be used here"),
    "link": (pack(("a", tarfile.SYMTYPE, "/etc/passwd")), "leads out of the archive"),
    "device": (pack(("a", tarfile.CHRTYPE, "")), "neither a file, a folder nor a link"),
    "bomb": (
        pack(("x", tarfile.REGTYPE, ""), *((str(number), tarfile.LNKTYPE, "x") for number in range(200))),
        "unpacked it has more than",
    ),
}


async def begin(service: Service, **data: Any) -> Session:
    offers = await ask(service, run=["true"], data=[data], time="1m", memory="64MiB")
    assert offers.offers, offers.reasons
    return await service.sessions.accept(offers.offers[0].id, ME)


async def test_each_fault_is_the_reason_of_its_session_which_never_starts(tmp_path: Path, source: WebSource) -> None:
    cases = []
    for name, (how, wish, words) in FAULTS.items():
        cases.append((words, {"location": source.put(f"/{name}", os.urandom(MIB), **how), "path": "in.bin", **wish}))
    for name, (content, words) in HARM.items():
        cases.append((words, {"location": source.put(f"/{name}.tar.gz", content), "path": "in", "unpack": True}))
    wide = {"kind": "local", "cores": len(cases), "memory": "4GiB"}
    async with serving(tmp_path / "home", platforms={"here": wide}) as service:
        begun = [await begin(service, **wish) for _, wish in cases]
        ends = await asyncio.gather(*(over(service, session.id, seconds=60) for session in begun))
        for (words, _), session in zip(cases, ends, strict=True):
            assert session.end
            assert (session.phase, session.end.kind, session.started) == (Phase.FAILED, EndKind.STAGING_FAILED, None)
            assert words in session.end.detail, session.end.detail
        assert await asyncio.to_thread(list_wrong, tmp_path) == []


def list_wrong(home: Path) -> list[str]:
    """What lies in a service's home as if it were whole, or half unpacked; what came of a file may be gone on with."""
    files = [file for file in home.rglob("*") if file.is_file() and file.stat().st_size >= MIB // 2]
    return [str(file) for file in files if file.name == "content" or "part.d" in file.parts or "sessions" in file.parts]


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.contract.far_system import open_platform
from tests.contract.test_data_cache import bring

async def main():
    platform = await open_platform(Path(sys.argv[1]), Path(sys.argv[1], "far"), downloads=False)
    await bring(platform, sys.argv[2])

asyncio.run(main())
"""


async def test_what_a_service_had_streamed_when_it_was_killed_is_gone_on_with_by_the_next(
    tmp_path: Path, source: WebSource
) -> None:
    content = os.urandom(4 * MIB)
    address = source.put("/killed", content, held_at=2 * MIB)
    words = [sys.executable, "-c", KILLED, str(tmp_path), address]
    process = await asyncio.create_subprocess_exec(*words, cwd=ROOT)
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(has_begun, tmp_path):
            assert process.returncode is None, "it ended before it could be killed"
            await asyncio.sleep(0.02)
    process.kill()
    await process.wait()
    source.files["/killed"].let_go.set()
    platform = await open_platform(tmp_path, tmp_path / "far", downloads=False)
    arrival = await bring(platform, address)
    assert content_of(tmp_path, arrival).read_bytes() == content
    first, second = [headers.get("Range") for headers in source.gets("/killed")]
    assert first is None
    assert second, "what had come was not brought again"
    await platform.close()


def has_begun(top: Path) -> bool:
    return any(part.stat().st_size >= MIB for part in top.glob("far/kept/*/part.file*"))
