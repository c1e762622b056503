"""The command line against the real service, which starts by itself in a home of its own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.client import AsyncClient, Client
from tests.nursery import typed

SUBLET = [sys.executable, "-m", "sublet.cli"]
PATIENCE = 60.0


class Person:
    """Someone at a terminal, with a home and a directory of their own."""

    def __init__(self, home: Path, directory: Path) -> None:
        self.home, self.directory = home, directory
        self.environment = {**os.environ, "SUBLET_HOME": str(home)}
        self.environment.pop("SUBLET_URL", None)

    def types(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return typed(words, self.environment, stdin=stdin, directory=self.directory, timeout=PATIENCE)

    def begins(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*SUBLET, *words], cwd=self.directory, env=self.environment, **more)

    def looks(self, session: str) -> Any:
        return json.loads(self.types("status", session, "--json").stdout)

    def waits_until(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    home, directory = tmp_path_factory.mktemp("home") / "sublet", tmp_path_factory.mktemp("cwd")
    someone = Person(home, directory)
    yield someone
    for session in someone.types("ps", "--quiet").stdout.split():
        someone.types("cancel", session)
    someone.types("down")


def test_many_who_begin_at_once_start_one_service(person: Person) -> None:
    begun = [person.begins("ps", "--quiet", stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    assert [process.wait(PATIENCE) for process in begun] == [0, 0, 0, 0]
    for process in begun:
        process.communicate()
    assert (person.home / "logs" / "service.log").read_text().count("service.listening") == 1
    assert json.loads((person.home / "run" / "service.json").read_text())["socket"].endswith("run/sublet.sock")
    assert person.home.stat().st_mode & 0o077 == 0


def test_who_begins_while_a_service_is_letting_go_waits_for_it(person: Person) -> None:
    person.types("up")
    person.types("down")
    with (person.home / "run" / "sublet.sock.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a service has it until its process has ended
        begun = person.begins("up", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert begun.stderr
        assert b"starting your Sublet service" in begun.stderr.readline()
        waits = b"waiting for a service of yours that is ending, or beginning ("
        assert begun.stderr.readline().startswith(waits)
    said, complaint = begun.communicate(timeout=PATIENCE)
    assert (begun.returncode, b"service is up" in said) == (0, True), complaint


def test_run_exits_with_the_exit_code_of_the_job(person: Person) -> None:
    code = "import sys; print('to stdout'); print('to stderr', file=sys.stderr); sys.exit(7)"
    done = person.types("run", "--cores", "1", "--time", "1m", "--", "python3", "-c", code)
    assert (done.returncode, done.stdout) == (7, "to stdout\n")
    assert all(words in done.stderr for words in ("to stderr\n", "It exited with code 7")), done.stderr
    killed = person.types("run", "-q", "--name", "runs/7", "--", "sh", "-c", "kill -KILL $$")
    assert (killed.returncode, killed.stdout, killed.stderr) == (137, "", "")
    assert "runs/7" in person.types("status", "runs/7").stdout, "a name may have slashes in it"


def test_run_brings_the_files_that_it_names_and_fetches_what_was_left(person: Person) -> None:
    (person.directory / "sim.py").write_text("import sys; open('out.txt', 'w').write(open(sys.argv[1]).read() * 2)\n")
    (person.directory / "in").mkdir()
    (person.directory / "in" / "words.txt").write_text("tick tock ")
    done = person.types("run", "--out", "results", "--", "python3", "sim.py", "in/words.txt")
    assert done.returncode == 0, done.stderr
    assert "brings sim.py, in/words.txt (" in done.stderr
    assert sorted(os.listdir(person.directory / "results")) == ["out.txt"]
    assert (person.directory / "results" / "out.txt").read_text() == "tick tock tick tock "


def test_a_folder_is_the_working_directory_and_only_what_changed_in_it_is_a_result(person: Person) -> None:
    project = person.directory / "project"
    for name, text in (
        ("sim.py", "import helper; print(helper.read('data/in.txt')); open('log.txt', 'a').write('more')\n"),
        ("helper.py", "read = lambda name: open(name).read().strip()\n"),
        ("data/in.txt", "tick"),
        ("log.txt", "begun "),
        ("run.sh", "#!/bin/sh\nexec python3 sim.py\n"),
        (".env", "SECRET=1"),
        ("__pycache__/x.pyc", "x"),
        ("big/model.bin", "x"),
        (".subletignore", "big/\n"),
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (project / "run.sh").chmod(0o755)
    (project / "brought" / "empty").mkdir(parents=True)
    (project / "job.yaml").write_text(
        "workdir: .\nrun: [sh, -c, './run.sh && ls -A && mkdir -p made/empty']\ntime: 1m\n"
    )
    done = person.types("run", "project/job.yaml", "--out", "left")
    assert done.returncode == 0, done.stderr
    said = [name for name in done.stdout.split() if name not in ("__pycache__", ".sublet")]
    assert said == ["tick", "brought", "data", "helper.py", "job.yaml", "log.txt", "run.sh", "sim.py"]
    assert "brings project/ (" in done.stderr
    assert "leaves .env behind" in done.stderr
    left = [path.name for path in (person.directory / "left").rglob("*") if path.suffix != ".pyc" and path.is_file()]
    assert left == ["log.txt"], "what is as it was brought is no result"
    assert (person.directory / "left" / "made" / "empty").is_dir()
    assert not (person.directory / "left" / "brought").exists()
    assert (person.directory / "left" / "log.txt").read_text() == "begun more"
    assert "project" not in person.types("run", "-q", "--workdir", "project", "--", "ls", "-A").stdout
    listed = json.loads(person.types("ps", "--all", "--json").stdout)["items"]
    assert "job" in [session["name"] for session in listed]


def test_files_land_where_they_were_named_from_python_too(person: Person) -> None:
    (person.directory / "sub").mkdir()
    for name, text in (("sim.py", "import sys; print(open(sys.argv[1]).read())"), ("sub/x.csv", "a,b")):
        (person.directory / name).write_text(text)
    program = """
from sublet import Client
session = Client().ask(run=["python3", "sim.py", "sub/x.csv"], time="1m", data=["/etc/hostname"])[0].accept().wait()
print("".join(session.logs()).strip(), [file.path for file in session.results()], session.name)
"""
    words = [sys.executable, "-c", program]
    done = subprocess.run(
        words, cwd=person.directory, env=person.environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "a,b [] python3 sim.py sub/x.csv\n", done.stderr
    where = person.types("run", "-q", "--data", "sub/x.csv:in.csv", "--", "cat", "in.csv")
    assert where.stdout == "a,b"
    assert person.types("run", "-q", "--data", "in=sub/x.csv", "--", "cat", "data/in/x.csv").stdout == "a,b"


def test_ask_accept_logs_result_and_delete(person: Person) -> None:
    request = "run: [sh, -c, 'echo first; echo made; echo kept > kept.txt; mkdir -p a/b']\ncores: 1\ntime: 1m\n"
    offer = person.types("ask", "-", "--quiet", stdin=request).stdout.split()[0]
    assert person.types("accept", offer).stdout.startswith(f"{offer} is accepted")
    assert person.types("logs", "--follow", offer).stdout == "first\nmade\n"
    assert person.types("logs", "--tail", "1", offer).stdout == "made\n"
    assert person.types("logs", "--tail", "7B", "-f", offer).stdout == "made\n"
    assert person.types("logs", "--tail", "many", offer).returncode == 2
    assert person.types("result", offer, "--quiet").stdout == "kept.txt\n"
    assert person.types("result", offer, "kept.txt").stdout == "kept\n"
    assert person.types("result", offer, "--archive", "all.tar.gz").returncode == 0
    listed = subprocess.run(["tar", "tzf", person.directory / "all.tar.gz"], capture_output=True, text=True, check=True)
    assert [name.partition("/")[2] for name in listed.stdout.splitlines()] == ["a/b/", "kept.txt"]
    shown = person.types("result", offer)
    assert [line.split()[:2] for line in shown.stdout.splitlines()[1:]] == [["kept.txt", "5"], ["a/b/", "empty"]]
    assert shown.stderr.startswith("1 file, 5 B and 1 empty folder, kept until ")
    assert offer in person.types("ps", "--quiet").stdout
    assert "session.completed" in person.types("events", offer).stdout
    assert person.types("delete", offer).returncode == 0
    assert person.types("status", offer).returncode == 1


def test_cancel_explain_extend_and_pause(person: Person) -> None:
    session = person.types("run", "--detach", "--quiet", "--time", "5m", "--", "sleep", "300").stdout.strip()
    person.waits_until(lambda: person.looks(session)["phase"] == "RUNNING")
    assert "Running since" in person.types("explain", session).stdout
    before = person.looks(session)["until"]
    assert person.types("extend", session[:6], "5m").returncode == 0
    assert person.looks(session)["until"] > before
    assert person.types("pause", session[:6]).stdout.endswith("is paused: stopped on its node; its time runs on.\n")
    assert "paused: stopped on its node" in person.types("ps").stdout
    assert person.types("resume", session[:6]).stdout.endswith("goes on: continued on its node.\n")
    assert person.types("cancel", session).returncode == 0
    person.waits_until(lambda: person.looks(session)["phase"] == "CANCELLED")
    assert person.looks(session)["end"]["kind"] == "cancelled"


def test_a_no_tells_why_and_exits_with_1(person: Person) -> None:
    done = person.types("run", "--cores", "100000", "--", "true")
    assert done.returncode == 1
    assert done.stdout.startswith("NO\n")
    assert "possible:" in done.stdout


def test_ctrl_c_without_a_terminal_lets_it_go_on(person: Person) -> None:
    words = ("run", "--time", "5m", "--", "sh", "-c", "echo begun; sleep 300")
    running = person.begins(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert running.stdout is not None
    assert running.stdout.readline() == b"begun\n"
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert b"goes on" in said
    session = person.types("ps", "--phase", "RUNNING", "--quiet").stdout.split()[0]
    assert person.types("cancel", session).returncode == 0


def test_ctrl_c_at_a_terminal_asks_and_cancels(person: Person) -> None:
    with Terminal(person, "run", "--time", "5m", "--", "sh", "-c", "echo begun; sleep 300") as terminal:
        terminal.reads_until("begun")
        terminal.types("\x03")
        terminal.reads_until("cancel it (c), or detach")
        terminal.types("c\n")
        terminal.reads_until("is cancelled")
        assert terminal.ends() == 130
    assert person.types("ps", "--phase", "RUNNING", "--quiet").stdout == ""


def test_attach_opens_the_terminal_of_a_shell_session(person: Person) -> None:
    words = ("run", "--detach", "--quiet", "--interactive", "shell", "--time", "5m")
    session = person.types(*words).stdout.strip()
    person.waits_until(lambda: person.looks(session)["phase"] == "AVAILABLE")
    with Terminal(person, "attach", session) as terminal:
        terminal.reads_until("connected to")
        terminal.types("echo $((6*7))-is-it\n")
        terminal.reads_until("42-is-it")
        terminal.types("\x1d")
        terminal.reads_until("it goes on")
        assert terminal.ends() == 0
    with Terminal(person, "attach", session) as terminal:
        terminal.reads_until("42-is-it")
        terminal.types("exit\n")
        terminal.reads_until("has ended")
        assert terminal.ends() == 0
    person.waits_until(lambda: person.looks(session)["phase"] == "COMPLETED")


def test_a_token_lets_a_program_in_over_tcp(person: Person) -> None:
    url = json.loads(person.types("up", "--json").stdout)["url"]
    token = person.types("token", "--quiet", "--expires", "1h", "--note", "a test").stdout.strip()
    person.environment |= {"SUBLET_URL": url, "SUBLET_TOKEN": token}
    try:
        assert person.types("ps", "--all").returncode == 0
        person.environment["SUBLET_TOKEN"] = "wrong"
        assert person.types("ps").returncode == 4
    finally:
        person.environment.pop("SUBLET_URL")
        person.environment.pop("SUBLET_TOKEN")
    listed = json.loads(person.types("token", "list", "--json").stdout)["items"]
    known = next(one["id"] for one in listed if one["note"] == "a test")
    assert person.types("token", "revoke", known).returncode == 0


def test_a_program_asks_accepts_waits_and_reads(person: Person) -> None:
    client = Client(socket=person.home / "run" / "sublet.sock")
    offers = client.ask(run=["sh", "-c", "echo one; echo two > out.csv"], cores=1, time="1m")
    session = offers[0].accept()
    assert "".join(session.logs(follow=True)) == "one\n"
    assert (session.wait(timeout=PATIENCE).phase, session.exit_code) == ("COMPLETED", 0)
    assert [file.path for file in session.results()] == ["out.csv"]
    assert session.result("out.csv") == b"two\n"
    assert session.id in {one.id for one in client.sessions(phase="COMPLETED")}
    assert "session.completed" in {event.kind for event in client.events(session.id)}
    assert client.whoami().person
    session.delete()
    refused = client.ask(run="true", cores=100000)
    assert (refused.result, len(refused)) == ("NO", 0)
    assert refused.reasons[0].nearest


@pytest.mark.anyio
async def test_a_program_that_awaits_does_the_same(person: Person) -> None:
    async with AsyncClient(socket=person.home / "run" / "sublet.sock") as client:
        session = await (await client.ask(run=["echo", "one"], time="1m"))[0].accept()
        assert "".join([piece async for piece in session.logs(follow=True)]) == "one\n"
        await session.wait(timeout=PATIENCE)
        assert session.exit_code == 0
        await session.delete()


def test_platforms_and_the_doctor_are_well(person: Person) -> None:
    assert "here" in person.types("platform", "list", "--quiet").stdout.split()
    assert "cores" in person.types("platform", "show", "here").stdout
    found = person.types("doctor")
    assert found.returncode == 0, found.stdout
    assert "memory is limited by" in found.stdout, "how limits are held is told"


def test_a_second_service_in_the_same_home_is_refused(person: Person) -> None:
    second = person.types("serve")
    assert second.returncode == 1
    assert "already serves" in second.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a machine another name")
def test_a_login_node_is_refused_with_a_place_to_go(person: Person, tmp_path: Path) -> None:
    (tmp_path / "sbatch").touch(mode=0o755)
    environment = {**person.environment, "SUBLET_HOME": str(tmp_path / "home")}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    line = 'hostname login1 && exec "$@"'
    words = ["unshare", "--uts", "--pid", "--fork", "--mount-proc", "sh", "-c", line, "sh", *SUBLET, "ps"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "login1 looks like a login node" in done.stderr
    assert "hint: Run Sublet on your own machine" in done.stderr


def test_down_stops_the_service_and_what_runs_goes_on(person: Person) -> None:
    words = ("run", "--detach", "--quiet", "--time", "5m", "--", "sh", "-c", "sleep 2; echo done > done.txt")
    session = person.types(*words).stdout.strip()
    person.waits_until(lambda: person.looks(session)["phase"] == "RUNNING")
    assert person.types("down").stdout == "Your Sublet service is down.\n"
    assert person.types("down").stdout == "No service of yours was running.\n"
    assert not (person.home / "run" / "sublet.sock").exists()
    assert person.types("logs", "--follow", session).returncode == 0  # starts it again
    person.waits_until(lambda: person.looks(session)["phase"] == "COMPLETED")
    assert person.types("result", session, "done.txt").stdout == "done\n"


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, person: Person, *words: str) -> None:
        self._words, self._person = words, person
        self._seen = ""

    def __enter__(self) -> Terminal:
        self._master, slave = pty.openpty()
        more: dict[str, Any] = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True}
        code = "import fcntl, termios, sys; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from sublet.cli import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *self._words],
            cwd=self._person.directory,
            env=self._person.environment,
            **more,
        )
        os.close(slave)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def reads_until(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self._seen:
            ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
            assert ready, self._seen
            try:
                self._seen += os.read(self._master, 65536).decode("utf-8", "replace")
            except OSError:
                assert text in self._seen, self._seen
        self._seen = self._seen.partition(text)[2]

    def ends(self) -> int:
        return self._process.wait(PATIENCE)

    def types_until_it_ends(self, text: str) -> int:
        """As a person does who sees nothing happen: Python can lose a Ctrl-C in the moment that a question appears."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.types(text)
            try:
                return self._process.wait(1)
            except subprocess.TimeoutExpired:
                continue
        raise AssertionError(f"it goes on after {PATIENCE} s")


def test_an_app_is_tried_here_and_a_wrong_parameter_is_refused_before(person: Person) -> None:
    folder = person.directory / "flood"
    folder.mkdir()
    (folder / "sublet.yaml").write_text(
        "name: flood\nrun: sh main.sh\n"
        "parameters: {years: {type: integer, maximum: 5, default: 0}}\n"
        "resources: {memory: 64MiB-1GiB, time: 1m-5m}\n"
    )
    (folder / "main.sh").write_text('echo "years: $param_years"; cat "$data_folder/rain"/* > "$result_folder/out"\n')
    (person.directory / "rain").write_text("much\n")
    typed = person.types("app", "check", "flood", "--run", "--set", "years=3", "--data", "rain", "--out", "left")
    assert (typed.returncode, typed.stdout) == (0, "years: 3\n"), typed.stderr
    assert (person.directory / "left" / "result" / "out").read_text() == "much\n"
    refused = person.types("app", "check", "flood", "--run", "--set", "years=9")
    assert refused.returncode == 2
    assert "within" in refused.stderr or "maximum 5" in refused.stderr
