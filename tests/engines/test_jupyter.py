"""Notebooks run in kernels of a real Jupyter Server and of a real JupyterHub, and their ends are told truly."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sublet.booking.model.job import Job, JobState, Program, State
from sublet.booking.model.kernels import BROUGHT, KERNEL_PLAN
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformUnreachable, TokenNeeded
from sublet.platforms.conformance import Rule, rules_for, try_rule
from sublet.platforms.jupyter.platform import JupyterHub, JupyterPlatform, JupyterServer
from sublet.platforms.names import name_session
from tests.engines.asking import PATIENCE
from tests.engines.jupyter_servers import Jupyter, serve_hub, serve_jupyter
from tests.real.notebooks import notebook

pytestmark = [pytest.mark.anyio, pytest.mark.engines]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    with serve_jupyter(tmp_path_factory.mktemp("jupyter") / "server") as jupyter:
        yield jupyter


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    with serve_hub(tmp_path_factory.mktemp("jupyter") / "hub") as jupyter:
        yield jupyter


def keep_token(folder: Path, token: str) -> str:
    path = folder / "token"
    path.write_text(token)
    path.chmod(0o600)
    return str(path)


@pytest.fixture
async def platform(server: Jupyter, tmp_path: Path) -> AsyncIterator[JupyterPlatform]:
    made = JupyterServer(name="one", url=server.url, token_file=keep_token(tmp_path, server.token), at_once=20)
    await made.open(tmp_path / "home")
    yield made
    await made.close()


@pytest.fixture
async def at_hub(hub: Jupyter, tmp_path: Path) -> AsyncIterator[JupyterPlatform]:
    made = JupyterHub(name="hub", url=hub.url, token_file=keep_token(tmp_path, hub.token), user="{person}", at_once=20)
    await made.open(tmp_path / "home")
    yield made
    await made.close()


def job_of(*cells: str, seconds: float = PATIENCE, person: str = "pierre", **fields: Any) -> Job:
    plan = {"parameters": fields.pop("parameters", {}), "requirements": fields.pop("requirements", [])}
    text = json.dumps(fields.pop("whole", None) or notebook(*cells)).encode()
    files = {KERNEL_PLAN: json.dumps(plan).encode(), f"data/{BROUGHT}/a.ipynb": text}
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    shape = Amounts(Shape(1, 1 << 28))
    return Job(Program(("jupyter-kernel",), {}, files), shape, (), until, timedelta(0), person=person, **fields)


async def wait_for(platform: JupyterPlatform, key: str, is_so: Callable[[JobState], object]) -> JobState:
    async with asyncio.timeout(PATIENCE):
        while not is_so(state := (await platform.ask([key]))[key]):
            assert state.state is not State.ENDED, state.end
            await asyncio.sleep(0.1)
    return state


async def end_of(platform: JupyterPlatform, key: str) -> JobState:
    return await wait_for(platform, key, lambda state: state.state is State.ENDED)


async def run(platform: JupyterPlatform, job: Job, key: str = "") -> tuple[str, JobState]:
    key = await platform.submit(job, key or str(uuid4()))
    return key, await end_of(platform, key)


async def read(platform: JupyterPlatform, key: str, path: str) -> bytes:
    return b"".join([piece async for piece in platform.read(key, path)])


async def clean(platform: JupyterPlatform, key: str) -> None:
    """Clean as the service does: what is not gone yet is tried again."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await platform.clean(key)
            except PlatformUnreachable:
                await asyncio.sleep(0.3)


async def find_broken(platform: JupyterPlatform) -> list[str]:
    turns = asyncio.Semaphore(3)

    async def check(rule: Rule) -> str:
        async with turns:
            finding = await try_rule(platform, rule, PATIENCE)
        return "" if finding.ok else f"{finding.rule} {finding.detail}"

    return [words for words in await asyncio.gather(*map(check, rules_for(platform))) if words]


async def test_a_server_keeps_every_rule(platform: JupyterPlatform) -> None:
    assert len(rules_for(platform)) == 12
    assert await find_broken(platform) == []


async def test_a_hub_keeps_every_rule(at_hub: JupyterPlatform) -> None:
    assert await find_broken(at_hub) == []


async def test_a_notebook_is_executed_with_its_parameters_and_all_that_it_shows_is_kept(
    platform: JupyterPlatform, server: Jupyter
) -> None:
    cells = (
        "radius = 1",
        "from IPython.display import display, HTML\ndisplay(HTML('<b>bold</b>'))\nprint('radius', radius)",
        "open('area.txt', 'w').write(str(3 * radius ** 2))\nradius * 2",
        "handle = display('first', display_id=True); handle.update('second')",
    )
    key, state = await run(platform, job_of(*cells, parameters={"radius": 7}))
    assert state.end
    assert (state.end.kind, state.end.code) == (EndKind.EXITED, 0), state.end
    assert (
        await platform.output(key, "stdout", 0, 1000) == b"<IPython.core.display.HTML object>\nradius 7\n14\n'first'\n"
    )
    left = {file.path for file in (await platform.results(key)).files}
    assert left == {"area.txt", "executed.ipynb", "executed.html"}
    assert await read(platform, key, "area.txt") == b"147"
    executed = json.loads(await read(platform, key, "executed.ipynb"))
    assert [cell["metadata"]["tags"] for cell in executed["cells"][:2]] == [["parameters"], ["injected-parameters"]]
    outputs = [cell["outputs"] for cell in executed["cells"]]
    assert outputs[2][0]["data"]["text/html"] == "<b>bold</b>"
    assert outputs[4][0]["data"]["text/plain"] == "'second'"
    assert executed["cells"][3]["execution_count"] == 4
    assert b"<b>bold</b>" in await read(platform, key, "executed.html")
    await clean(platform, key)
    assert os.listdir(server.home / "files") == [], "a guest leaves nothing"
    assert server.ask("GET", "/api/kernels").json() == []


async def test_ends_are_told_truly(platform: JupyterPlatform) -> None:
    raised = await run(platform, job_of("x = 0", "print('so far')\n1 / x", "print('never')"))
    end = raised[1].end
    assert end
    assert (end.kind, end.code, end.detail) == (
        EndKind.EXITED,
        1,
        "cell 2 raised ZeroDivisionError: division by zero",
    )
    assert (await platform.output(raised[0], "stderr", 0, 1000)).endswith(b"\nZeroDivisionError: division by zero\n")
    executed = json.loads(await read(platform, raised[0], "executed.ipynb"))
    assert [output["output_type"] for output in executed["cells"][1]["outputs"]] == ["stream", "error"]
    died = (await run(platform, job_of("x = 0", "import os; os.kill(os.getpid(), 9)")))[1].end
    assert died
    assert died.kind is EndKind.KERNEL_DIED
    assert "while cell 2 was running" in died.detail
    left = (await run(platform, job_of("import sys; sys.exit()", "1 / 0")))[1].end
    assert left
    assert (left.kind, left.code) == (EndKind.EXITED, 0)
    called = (await run(platform, job_of("x = 0", "exit(3)", "import time; time.sleep(60)")))[1].end
    assert called
    assert (called.kind, called.code, called.detail) == (EndKind.EXITED, 3, "cell 2 raised SystemExit: 3")
    much = (await run(platform, job_of("x = 0", "for each in range(8): print('x' * 1_000_000)")))[1].end
    assert much
    assert (much.kind, much.code) == (EndKind.EXITED, 0)
    assert much.detail.startswith("some output of cell 2 is missing")
    exotic = notebook("1")
    exotic["metadata"]["kernelspec"] = {"name": "idl", "language": "idl"}
    unknown = (await run(platform, job_of(whole=exotic)))[1].end
    assert unknown
    assert unknown.kind is EndKind.NOT_STARTED
    assert "there is no kernel for idl; there are: python3 (python)" in unknown.detail
    old = (await run(platform, job_of(whole={"nbformat": 3, "worksheets": []})))[1].end
    assert old
    assert "its nbformat is 3" in old.detail


async def test_data_is_there_and_what_was_only_brought_is_no_result(platform: JupyterPlatform) -> None:
    from sublet.booking.model.job import Mount

    key = str(uuid4())
    place = await platform.place(key)
    assert place
    (place / "data" / "cube").mkdir()
    body = os.urandom(7 << 20)  # more than is sent at a time
    (place / "data" / "cube" / "a.bin").write_bytes(body)
    given = place / "work" / "given.txt"
    given.write_text("given")
    (place / "brought.json").write_text(json.dumps({"given.txt": [5, given.stat().st_mtime_ns]}))
    cell = (
        "import hashlib, os\nprint(hashlib.sha256(open('in/a.bin', 'rb').read()).hexdigest(), open('given.txt').read(),"
        " os.path.exists(os.environ['SUBLET_DATA'] + '/cube/a.bin'))\nos.makedirs('out/deep')\n"
        "open('out/deep/b.bin', 'wb').write(open('in/a.bin', 'rb').read()[::-1]);"
    )
    job = job_of(cell, mounts=(Mount("data/cube", "in"),))
    _, state = await run(platform, job, key)
    assert state.end
    assert state.end.code == 0, (state.end, await platform.output(key, "stderr", 0, 3000))
    import hashlib

    expected = f"{hashlib.sha256(body).hexdigest()} given True\n".encode()
    assert (await platform.output(key, "stdout", 0, 1000)).startswith(expected)
    files = {file.path for file in (await platform.results(key)).files}
    assert files == {"out/deep/b.bin", "executed.ipynb", "executed.html"}
    assert await read(platform, key, "out/deep/b.bin") == body[::-1]
    await clean(platform, key)


async def test_a_service_that_is_killed_goes_on_where_it_was_and_runs_nothing_twice(
    server: Jupyter, tmp_path: Path
) -> None:
    token = keep_token(tmp_path, server.token)

    def make() -> JupyterServer:
        return JupyterServer(name="one", url=server.url, token_file=token)

    slow = "import time\nfor n in range(8):\n    print(n, flush=True)\n    time.sleep(0.5)\n"
    slow += "_ = open('ran', 'a').write('x')"
    first = make()
    await first.open(tmp_path / "home")
    key = await first.submit(job_of("x = 1", slow, "print('end', x)"), str(uuid4()))
    async with asyncio.timeout(PATIENCE):
        while b"1\n" not in await first.output(key, "stdout", 0, 100):  # noqa: ASYNC110 - it happens elsewhere
            await asyncio.sleep(0.1)
    await first.close()  # its WebSocket breaks off, as it does when a process is killed
    await asyncio.sleep(1.2)
    second = make()
    await second.open(tmp_path / "home")
    assert await second.find(key) == key
    assert await second.submit(job_of("1 / 0"), key) == key
    state = await end_of(second, key)
    assert state.end
    assert state.end.code == 0, state.end
    assert await second.output(key, "stdout", 0, 1000) == b"".join(b"%d\n" % n for n in range(8)) + b"end 1\n"
    assert await read(second, key, "ran") == b"x"
    await clean(second, key)
    await second.close()


async def test_nobody_without_a_token_is_let_in_and_the_servers_words_say_so(server: Jupyter, tmp_path: Path) -> None:
    wrong = JupyterServer(name="one", url=server.url, token_file=keep_token(tmp_path, "polonium"))
    await wrong.open(tmp_path / "home")
    with pytest.raises(TokenNeeded, match=r"one refuses the token: 403: Forbidden") as refused:
        await wrong.survey()
    assert "polonium" not in str(refused.value)
    await wrong.close()
    open_file = tmp_path / "token"
    open_file.chmod(0o644)
    readable = JupyterServer(name="one", url=server.url, token_file=str(open_file))
    await readable.open(tmp_path / "home")
    with pytest.raises(TokenNeeded, match="Others can read the token"):
        await readable.survey()
    await readable.close()
    nobody = JupyterServer(name="one", url="http://127.0.0.1:9")
    await nobody.open(tmp_path / "home")
    nobody.hold_tokens(lambda address, person: asyncio.sleep(0, "token"))
    with pytest.raises(TokenNeeded, match=r"one needs a token for http://127\.0\.0\.1:9"):
        await nobody.survey()
    await nobody.close()
    await nobody.open(tmp_path / "home")
    with pytest.raises(PlatformUnreachable):
        await nobody.survey()
    await nobody.close()


async def test_a_session_at_a_hub_has_a_server_of_its_own_that_is_gone_afterwards(
    at_hub: JupyterPlatform, hub: Jupyter
) -> None:
    key = await at_hub.submit(job_of("import time", "time.sleep(600)", person="marie"), str(uuid4()))
    await wait_for(at_hub, key, lambda state: state.state is State.RUNNING)
    servers = hub.ask("GET", "/hub/api/users/marie").json()["servers"]
    assert [name.endswith(name_session(key)) for name in servers] == [True]
    await at_hub.cancel([key], "marie")
    state = await end_of(at_hub, key)
    assert state.end
    assert (state.end.kind, state.end.by) == (EndKind.CANCELLED, "marie")
    await clean(at_hub, key)
    assert hub.ask("GET", "/hub/api/users/marie").json()["servers"] == {}
    assert os.listdir(hub.home / "homes" / "marie") == [] or not list((hub.home / "homes" / "marie").glob("sublet-*"))


async def test_a_culled_server_and_one_that_does_not_start_are_told(
    hub: Jupyter, at_hub: JupyterPlatform, tmp_path: Path
) -> None:
    key = await at_hub.submit(job_of("import time", "time.sleep(600)", person="irene"), str(uuid4()))
    await wait_for(at_hub, key, lambda state: state.state is State.RUNNING)
    name = next(iter(hub.ask("GET", "/hub/api/users/irene").json()["servers"]))
    assert hub.ask("DELETE", f"/hub/api/users/irene/servers/{name}").status_code in (202, 204)
    state = await end_of(at_hub, key)
    assert state.end
    assert state.end.kind in (EndKind.CULLED, EndKind.KERNEL_DIED), state.end
    assert "executed.ipynb" in {file.path for file in (await at_hub.results(key)).files}
    await clean(at_hub, key)
    broken = JupyterHub(
        name="broken",
        url=hub.url,
        token_file=keep_token(tmp_path, hub.token),
        user="{person}",
        options={"profile": "broken"},
    )
    await broken.open(tmp_path / "other")
    key, state = await run(broken, job_of("1", person="irene"))
    assert state.end
    assert state.end.kind is EndKind.NOT_STARTED
    assert "there is no profile of that name" in state.end.detail
    await clean(broken, key)
    await broken.close()


async def test_someone_works_in_a_hubs_own_server_and_it_ends_when_nobody_does(hub: Jupyter, tmp_path: Path) -> None:
    token = hub.make_token("eve")
    own = JupyterHub(name="own", url=hub.url, token_file=keep_token(tmp_path, token), idle=timedelta(seconds=2))
    await own.open(tmp_path / "home")
    survey = await own.survey()
    assert survey.notes[0].endswith("signed in as the user eve")
    program = Program(("jupyterhub",), connects="uri:jupyter-lab")
    until = datetime.now(UTC) + timedelta(minutes=5)
    job = Job(program, Amounts(Shape(1, 1 << 28)), (), until, timedelta(0), person="whoever")
    key = await own.submit(job, str(uuid4()))
    state = await wait_for(own, key, lambda state: state.connector)
    assert state.connector
    address = state.connector.location.removeprefix("see:")
    assert address.startswith(f"{hub.url}/user/eve/sublet-")
    assert b"jupyter" in hub.ask("GET", address.removeprefix(hub.url), token).content.lower()
    state = await end_of(own, key)
    assert state.end
    assert state.end.by == "sublet, because nobody had used it for 2 s"
    await clean(own, key)
    assert hub.ask("GET", "/hub/api/users/eve").json()["servers"] == {}
    await own.close()


async def test_what_a_lost_home_left_at_a_hub_is_swept(at_hub: JupyterPlatform, hub: Jupyter) -> None:
    key = await at_hub.submit(job_of("import time", "time.sleep(600)", person="paul"), str(uuid4()))
    await wait_for(at_hub, key, lambda state: state.state is State.RUNNING)
    home = at_hub._home
    owner = (home / "owner").read_text()
    await at_hub.close()
    for name in ("sessions", "held", "running"):
        os.rename(home / name, home / f"{name}.lost")
    await at_hub.open(home)
    assert (home / "owner").read_text() == owner
    assert await at_hub.list_left() == [name_session(key)]
    await clean(at_hub, name_session(key))
    assert hub.ask("GET", "/hub/api/users/paul").json()["servers"] == {}
    assert await at_hub.list_left() == []
