"""A client that sends precisely what CyberGIS-Compute's own (version 2) sends, by its own HTTP, runs an app.

Its token is in the JSON body, of a GET too; an answer with `error` in it is an error.
"""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import uvicorn

from sublet.app import open_service
from sublet.client import Job, User
from sublet.kernel.errors import NoOwnLogins, NotReviewed, NotSignedIn, NotSubmitted, WrongCode
from sublet.kernel.settings import Settings
from sublet.people.model.people import Known, Role
from sublet.people.model.person import Person
from sublet.server.app import make_app
from sublet.service import Service
from tests.contract.services import allow, change_settings
from tests.contract.test_service_app_runs import MANIFEST
from tests.git_server import GitServer, git_server, program
from tests.old_client import OldClient
from tests.smtp import Mailbox

pytestmark = pytest.mark.anyio
ANN, REVIEWER = Person("ann@example.org"), Person("rae@example.org", reviewer=True)
BOB = "bob@example.org"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with git_server(tmp_path_factory.mktemp("git")) as running:
        running.repository("ann/hello").commit({"sublet.yaml": MANIFEST, "hello.sh": program("echo hello\n")}, "Begin")
        yield running


@pytest.fixture(scope="module")
async def service(
    server: GitServer, mailbox: Mailbox, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Service]:
    settings = Settings.load(
        tmp_path_factory.mktemp("home"),
        mode="gateway",
        mail=mailbox.settings,
        signing={"allow": ["*@example.org"]},
        apps={"private": [f"{server.url}/*"]},
        images={"python": "docker://ghcr.io/sublet/python"},
        platforms={"trial": {"kind": "memory", "takes": "0.1s", "cores": 32, "memory": "64GiB"}},
    )
    async with open_service(settings) as running:
        version = await running.apps.proposing.propose(ANN, f"{server.url}/ann/hello", name="hello")
        await running.apps.reviewing.approve("hello@1", REVIEWER, version.tree)
        await allow(running, "*@example.org")
        await allow(running, "*@example.org", noun="app")
        known = Known(BOB, Role.PERSON, running.now())
        await running.store.write(lambda tx: tx.people.add(known))
        yield running


@pytest.fixture(scope="module")
async def port(service: Service) -> AsyncIterator[int]:
    """A real listener: old clients speak HTTP/1.1 with a body in their GETs."""
    config = uvicorn.Config(make_app(service, "owner"), host="127.0.0.1", port=0, log_level="warning", lifespan="off")
    listener = uvicorn.Server(config)
    async with AsyncExitStack() as stack:
        task = asyncio.create_task(listener.serve())
        stack.callback(task.cancel)
        async with asyncio.timeout(20):
            while not listener.started:  # noqa: ASYNC110 - it has no event for this
                await asyncio.sleep(0.01)
        yield listener.servers[0].sockets[0].getsockname()[1]
        listener.should_exit = True
        await task


async def old_client(service: Service, port: int, name: str, **how: Any) -> OldClient:
    _, secret = await service.people.tokens.make_token(Person(name))
    return OldClient(port, secret, **how)


async def test_an_old_client_runs_an_app_from_its_form_to_its_results(service: Service, port: int) -> None:
    bob = await old_client(service, port, BOB)
    assert (await bob.request("GET", "/user")) == {"username": BOB}
    assert set((await bob.request("GET", "/hpc"))["hpc"]) == {"trial"}
    assert (await bob.request("GET", "/maintainer"))["maintainer"]["community_contribution"]["hpc"] == ["trial"]
    assert (await bob.request("GET", "/container"))["container"]["python"]["dockerhub"]
    form = (await bob.request("GET", "/git"))["git"]["hello"]
    assert form["param_rules"]["years"] == {"type": "string_input", "require": False, "default_value": "10"}
    assert (form["supported_hpc"], form["default_hpc"]) == (["trial"], "trial")
    assert (await bob.request("GET", "/hpc"))["hpc"]["trial"]["description"]
    assert set(await bob.request("GET", "/user/jupyter-globus")) == {"endpoint", "root_path", "container_home_path"}
    assert form["slurm_input_rules"]["num_of_task"]["max"] == 4
    assert form["slurm_input_rules"]["time"] == {
        "type": "integer",
        "min": 1,
        "max": 60,
        "step": 1,
        "default_value": 10,
        "unit": "Minutes",
    }
    assert await bob.request("GET", "/announcement") == {}
    job = await bob.request("POST", "/job", maintainer="community_contribution", hpc="trial")
    for name in ("id", "slurmId", "hpc", "remoteExecutableFolder", "remoteDataFolder", "remoteResultFolder", "param"):
        assert name in job
    where = f"/job/{job['id']}"
    folder = {"type": "git", "gitId": "hello"}
    mail = {"mail_user": [BOB], "mail_type": ["FAIL", "END", "BEGIN"]}
    sent = {"years": "0", "label": "", "fast": False}
    await bob.request("PUT", where, localExecutableFolder=folder, param=sent, slurm={"time": "5:00", **mail})
    submitted = await bob.request("POST", f"{where}/submit")
    assert submitted["localExecutableFolder"]["gitId"] == "hello"
    assert await bob.fails("POST", f"{where}/submit") == (
        401,
        f"The job {job['id']} is already submitted or in the queue.",
    )
    async with asyncio.timeout(30):
        while not any(e["type"] == "JOB_ENDED" for e in (await bob.request("GET", where))["events"]):
            await service.signals.wait(0.05)
    done = await bob.request("GET", where)
    assert (done["isFailed"], done["phase"]) == (False, "COMPLETED")
    assert isinstance(await bob.request("GET", f"{where}/events"), list)
    assert isinstance(await bob.request("GET", f"{where}/logs"), list)
    assert await bob.request("GET", f"{where}/result-folder-content") == ["/"]
    newest = await bob.request("POST", "/job", hpc="trial")
    assert [one["id"] for one in (await bob.request("GET", "/user/job"))["job"]] == [job["id"], newest["id"]]
    assert (await bob.request("GET", "/user/slurm-usage?format=True"))["cpus"] >= 1
    for part, name in (("remoteExecutableFolder", "mine_executable"), ("remoteResultFolder", "mine_result")):
        await bob.request("PUT", f"/folder/{done[part]['id']}", name=name)
    [seen] = (await bob.request("GET", "/folder"))["folder"]
    listed = ("id", "name", "hpc", "userId", "isWritable", "createdAt", "updatedAt", "deletedAt")
    assert set(listed) == set(seen)
    assert seen["name"] == "mine_result"
    assert [hook.session for hook, _ in await service.notices.hooks.hooks(Person(BOB))] == [done["session"]]
    assert (await bob.fails("PUT", f"{where}/cancel", jobId=job["id"]))[0] == 401


async def test_a_form_in_a_notebook_opens_without_a_token_where_the_catalogue_is_open(
    service: Service, port: int
) -> None:
    """What `show_ui()` of their client does before anything is drawn: it asks as nobody, and wants `hello_world`."""
    nobody = OldClient(port, "")
    status, _ = await asyncio.to_thread(nobody.send, "GET", "/git", {})
    assert status == 402, "not open"
    closed = service.settings.cybergis
    change_settings(service, cybergis="open")
    try:
        _, jobs = await asyncio.to_thread(nobody.send, "GET", "/git", {})
        _, hpcs = await asyncio.to_thread(nobody.send, "GET", "/hpc", {})
        first = jobs["git"]["hello_world"]
        assert first == jobs["git"]["hello"], "their form opens on a name of its own"
        assert hpcs["hpc"][first["default_hpc"]]["ip"] == "", "nobody learns where it is"
        _, one = await asyncio.to_thread(nobody.send, "GET", "/git/Hello", {})
        assert one["git"]["Hello"] == first
        assert (await asyncio.to_thread(nobody.send, "POST", "/job", {"hpc": "trial"}))[0] == 402
    finally:
        change_settings(service, cybergis=closed)


async def test_an_old_client_is_told_where_its_results_are_and_slurms_own_number(service: Service, port: int) -> None:
    bob = await old_client(service, port, BOB)
    where = f"/job/{(await bob.request('POST', '/job', hpc='trial'))['id']}"
    await bob.request("PUT", where, localExecutableFolder={"type": "git", "gitId": "Hel_lo"}, param={"years": "1"})
    await bob.request("POST", f"{where}/submit")
    async with asyncio.timeout(30):
        while (done := await bob.request("GET", where))["phase"] != "COMPLETED":
            await service.signals.wait(0.05)
    link = f"/web/sessions/{done['session']}/archive"
    assert link in done["logs"][0]["message"]
    answer = await asyncio.to_thread(
        bob.send, "POST", f"/folder/{done['session']}/download/globus-init", {"jupyterhubApiToken": bob.token}
    )
    assert (answer[0], link in str(answer[1]["messages"])) == (403, True)
    assert done["slurmId"] is None, "a platform without numbers of its own"


async def test_what_old_clients_could_do_to_others_they_can_not_here(service: Service, port: int) -> None:
    bob = await old_client(service, port, BOB, plain=True)
    other = await old_client(service, port, "carl@example.org")
    stranger = await old_client(service, port, "eve@elsewhere.example")
    job = await bob.request("POST", "/job")
    where = f"/job/{job['id']}"
    await bob.request("PUT", where, localExecutableFolder={"type": "git", "gitId": "hello"})
    assert (await other.fails("PUT", "/folder/x", name="theirs"))[0] == 401
    acts = [("GET", ""), ("PUT", ""), ("POST", "/submit"), ("PUT", "/cancel"), ("PUT", "/pause"), ("GET", "/logs")]
    acts += [("GET", "/events"), ("GET", "/result-folder-content"), ("PUT", "/resume"), ("DELETE", "")]
    for method, uri in acts:
        assert (await other.fails(method, f"{where}{uri}"))[0] == 401
    assert (await stranger.request("GET", "/git"))["git"] == {}
    assert (await stranger.request("GET", "/hpc"))["hpc"] == {}
    mine = await stranger.request("POST", "/job", hpc="trial")
    await stranger.request("PUT", f"/job/{mine['id']}", localExecutableFolder={"type": "git", "gitId": "hello"})
    assert (await stranger.fails("POST", f"/job/{mine['id']}/submit"))[0] == 401
    for fields in ({"user": "me", "password": "x"}, {"password": "x"}):
        assert (await bob.fails("POST", "/job", **fields))[0] == 401
    assert (await bob.fails("POST", "/folder/x/download/globus-init"))[0] == 403
    mail = {"mail_user": ["victim@example.org"], "mail_type": ["END"]}
    await bob.request("PUT", where, slurm=mail)
    assert (await bob.fails("POST", f"{where}/submit"))[1].startswith("victim@example.org")
    await bob.request("PUT", where, slurm={"time": 5, "partition": "short"})
    status, why = await bob.fails("POST", f"{where}/submit")
    assert (status, why.partition(":")[0]) == (402, "A queue can't be chosen on trial")
    await bob.request("PUT", where, slurm={"time": 5})
    await bob.request("PUT", where, param={"years": "$(id)"})
    status, why = await bob.fails("POST", f"{where}/submit")
    assert (status, "years" in why) == (402, True)
    await bob.request(
        "PUT", where, param={"years": 1}, localDataFolder={"type": "globus", "endpoint": "e", "path": "/p"}
    )
    status, why = await bob.fails("POST", f"{where}/submit")
    assert (status, "Globus" in why) == (402, True)
    nobody = OldClient(port, "sublet_wrong")
    assert (await nobody.fails("GET", "/user"))[0] == 402
    assert (await asyncio.to_thread(nobody.send, "GET", "/hpc"))[0] == 402
    assert (await bob.fails("GET", "/nothing"))[0] == 401
    await bob.request("DELETE", where)
    assert (await bob.fails("GET", where))[0] == 401
    assert job["id"] not in [one["id"] for one in (await bob.request("GET", "/user/job"))["job"]]


def make_zip(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


async def test_a_folder_that_an_old_client_uploads_is_its_owners_upload_and_the_jobs_data(
    service: Service, port: int
) -> None:
    bob = await old_client(service, port, BOB)
    other = await old_client(service, port, "carl@example.org")
    id = (await bob.request("POST", "/job", hpc="trial"))["id"]
    await bob.request("PUT", f"/job/{id}", localExecutableFolder={"type": "git", "gitId": "hello"})
    for years in (b"1990", b"1991"):  # the second takes the place of the first
        status, job = await bob.upload(id, make_zip(**{f"{years.decode()}.csv": years, "deep__b.csv": b""}))
        assert (status, job["id"]) == (200, id), job
    assert job["localDataFolder"] == {"type": "upload", "path": f"upload:job-{id}/"}
    upload, files, _ = await service.uploads.kept.get(Person(BOB), f"job-{id}")
    assert [(each.file.path, each.file.is_whole) for each in files] == [("1991.csv", True), ("deep/b.csv", True)]
    session = (await bob.request("POST", f"/job/{id}/submit"))["session"]
    stored = await service.sessions.get(session, Person(BOB))
    offerset = await service.store.read(lambda tx: tx.offersets.get(stored.offerset))
    assert offerset
    assert upload.id in [data.location.partition(":")[2].partition("/")[0] for data in offerset.request.data]
    fresh = (await bob.request("POST", "/job", hpc="trial"))["id"]
    assert (await other.upload(fresh, make_zip(a=b"1")))[0] == 401
    for content, words in ((b"no zip", "no archive"), (make_zip(**{"..__evil": b"x"}), "can't be used")):
        status, answer = await bob.upload(fresh, content)
        assert (status, words in answer["error"]) == (402, True), answer
    assert (await bob.upload(fresh, make_zip(a=b"1"), name="a.tar"))[0] == 402
    assert await asyncio.to_thread(bob.announce_upload, 101 << 20) == 413


async def test_a_user_signs_in_is_recreated_from_a_file_and_runs_a_job(
    service: Service, port: int, server: GitServer, mailbox: Mailbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("kept") / "deep" / "user.json"
    url = f"http://127.0.0.1:{port}"

    def code(address: str) -> str:
        mailbox.wait_for(address, 2)
        return mailbox.code(address, 2)

    def works() -> None:
        with pytest.raises(WrongCode):
            User("dora@example.org", url, file=file, code=lambda _: "0000 0000")
        assert not file.exists()
        user = User("dora@example.org", url, file=file, code=code)
        assert [oct(path.stat().st_mode)[-3:] for path in (file, file.parent)] == ["600", "700"]
        assert user.token not in repr(user)
        again = User(url=url, file=file)
        assert (again.email, again.whoami().person) == ("dora@example.org", "dora@example.org")
        job = again.job(hpc="trial", file=f"{server.url}/ann/hello", app={"years": 0, "label": ""})
        with pytest.raises(NotSubmitted):
            job.status()
        job.submit().wait(30)
        assert job.status().phase == "COMPLETED"
        assert "session.completed" in [event.kind for event in job.events()]
        assert list(job.logs()) != []
        assert job.result_folder_content() == ()
        alone = Job(id=job.id, url="127.0.0.1", port=port, protocol="HTTP", token=job.token)
        assert alone.status().phase == "COMPLETED"
        with pytest.raises(NotReviewed):
            Job(user=again).set(file="github://nobody/nothing").submit()
        for wrong in ({"user": "me"}, {"password": "secret"}, {"user": "me", "password": "secret"}):
            with pytest.raises(NoOwnLogins):
                Job(hpc="trial", url=url, **wrong)
        again.logout()
        assert not file.exists()
        with pytest.raises(NotSignedIn):
            User(url=url, file=file)
        with pytest.raises(NotSignedIn):
            Job(id=job.id, url=url, token=again.token)

    await asyncio.to_thread(works)
