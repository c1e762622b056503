"""How batches are written and read, what ssh's words mean, and what ssh is told."""

import subprocess
from pathlib import Path

import pytest

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.reach.batch import LISTEN, Batch
from sublet.reach.files import TransferEntry, groups, part_name, small
from sublet.reach.port import Command, Outcome, as_is, read_printed
from sublet.reach.record import elsewhere, logins, new_record, read_record
from sublet.reach.refusals import BUSY, HostKey, read_refusal
from sublet.reach.target import Target, private

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
The fingerprint for the ED25519 key sent by the remote host is
SHA256:abcdef.
Host key for centre.edu has changed and you have requested strict checking.
Host key verification failed.
"""
UNREACHABLE = (
    "ssh: Could not resolve hostname nowhere: Name or service not known",
    "ssh: connect to host 10.0.0.1 port 22: Connection refused",
    "ssh: connect to host 10.0.0.1 port 22: Connection timed out",
    "kex_exchange_identification: Connection closed by remote host",
    "",
)
DENIED = (
    "me@centre.edu: Permission denied (publickey,keyboard-interactive).",
    "Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures",
    "command-line: line 0: Bad configuration option: nonsense",
)


def command(*argv: str, stdin: bytes = b"") -> Command[Outcome]:
    return Command(argv, as_is, stdin)


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/bin:/bin"}


def listen(sent: bytes, home: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", LISTEN],
        input=sent,
        capture_output=True,
        check=False,
        env=environment(home),
    )


def test_a_script_that_was_cut_short_anywhere_runs_nothing(tmp_path: Path) -> None:
    batch = Batch([command("touch", f"{tmp_path}/one"), command("cat", stdin=b"read this")])
    sent = b"".join(batch.pieces())
    for length in [*range(0, len(sent), 37), *range(len(sent) - 60, len(sent))]:
        listen(sent[:length], tmp_path)
        assert not (tmp_path / "one").exists(), f"after {length} of {len(sent)} bytes"
    done = listen(sent, tmp_path)
    assert [outcome.stdout for outcome in batch.read(done.stdout, done.stderr)] == [b"", b"read this"]
    assert (tmp_path / "one").exists()


def test_several_batches_go_through_one_listening_shell(tmp_path: Path) -> None:
    batches = [Batch([command("echo", str(n))]) for n in range(3)]
    done = listen(b"".join(piece for batch in batches for piece in batch.pieces()), tmp_path)
    assert [batch.read(done.stdout, done.stderr)[0].stdout for batch in batches] == [b"0\n", b"1\n", b"2\n"]


def test_a_short_batch_goes_in_the_words_of_the_exec_and_one_with_something_to_read_does_not(tmp_path: Path) -> None:
    batch = Batch([command("printf", "%s", "it's $(odd) !\n\\"), command("pwd")])
    line = batch.line()
    assert line is not None
    assert not set(line) & set("!\\\n")  # a csh would read those as its own
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=True, env=environment(tmp_path))
    assert [o.stdout for o in batch.read(done.stdout, done.stderr)] == [b"it's $(odd) !\n\\", f"{tmp_path}\n".encode()]
    assert Batch([command("cat", stdin=b"secret")]).line() is None
    assert Batch([command("echo", "x" * 20_000)]).line() is None


def test_noise_before_the_marks_is_left_out_and_noise_within_is_the_commands_own() -> None:
    batch = Batch([command("a"), command("b")], mark=b"M")
    stdout = b"Welcome\nM:0:0;one;M:1:7;\0\xffM:2:0;bye"
    stderr = b"bad M M:0:;eM:1:;M:2:;"
    assert batch.read(stdout, stderr) == [Outcome(7, b"one;", b"e"), Outcome(0, b"\0\xff", b"")]


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_stream_is_over_only_with_the_whole_of_its_last_mark(cut: int) -> None:
    batch = Batch([command("a")], mark=b"M" * 6)
    whole = b"MMMMMM:0:0;said" + b"MMMMMM:1:255;"
    assert batch.over(whole)
    assert not batch.over(whole[:-cut])
    assert batch.over(whole, len(whole) - cut)


@pytest.mark.parametrize("words", UNREACHABLE)
def test_a_host_that_does_not_answer_is_unreachable_and_tried_again(words: str) -> None:
    assert isinstance(read_refusal("far", "centre.edu", words), PlatformUnreachable)


@pytest.mark.parametrize("words", DENIED)
def test_a_centre_that_says_no_has_refused_in_its_own_words(words: str) -> None:
    error = read_refusal("far", "centre.edu", words)
    assert isinstance(error, PlatformRefused)
    assert words.split(":")[-1].strip() in error.message


def test_a_changed_host_key_is_refused_with_what_to_do() -> None:
    error = read_refusal("far", "centre.edu", CHANGED)
    assert isinstance(error, PlatformRefused)
    assert "host key of centre.edu has changed" in error.message
    assert "SHA256:abcdef" in error.message
    assert "ssh-keygen -R centre.edu" in error.advice


def test_what_is_wrong_with_a_host_key_is_told_beside_the_words() -> None:
    unconfirmed = read_refusal("far", "centre.edu", "Host key verification failed.")
    assert unconfirmed.values["host_key"] is HostKey.UNCONFIRMED
    assert read_refusal("far", "centre.edu", CHANGED).values["host_key"] is HostKey.CHANGED


def test_a_refused_channel_is_known_by_its_words() -> None:
    assert BUSY.search("mux_client_request_session: session request failed: Session open refused by peer")


def value(argv: tuple[str, ...], key: str) -> str:
    """What ssh takes an option to be: the first one that it is given."""
    return next(word.partition("=")[2] for word in argv if word.partition("=")[0] == key)


def test_no_option_turns_off_the_check_of_host_keys_or_opens_a_connection_of_its_own(tmp_path: Path) -> None:
    worst = {
        "StrictHostKeyChecking": "no",
        "ProxyCommand": "nc",
        "BatchMode": "no",
        "RemoteCommand": "rm",
        "User": "me",
    }
    target = Target("far", "centre.edu", tmp_path, options=worst)
    assert value(target.to_open(), "StrictHostKeyChecking") == "ask"
    assert value(target.to_open(), "ProxyCommand") == "nc"
    assert value(target.to_use("true"), "ProxyCommand") == "false"
    assert value(target.to_use("true"), "BatchMode") == "yes"
    assert value(target.to_use("true"), "RemoteCommand") == "none"


@pytest.mark.parametrize("host", ["-oProxyCommand=evil", "", "a b", "a\nb"])
def test_a_host_that_ssh_would_read_as_an_option_is_refused(host: str, tmp_path: Path) -> None:
    with pytest.raises(PlatformRefused):
        Target("far", host, tmp_path)


def test_the_socket_has_a_short_path_however_deep_the_home_is(tmp_path: Path) -> None:
    deep = private(tmp_path / ("x" * 100))
    sockets = {Target("far", host, deep).socket for host in ("one", "two")}
    assert len(sockets) == 2
    assert all(len(bytes(socket)) <= 90 for socket in sockets)
    assert Target("far", "one", Path("/h")).socket.parent == Path("/h")


def test_a_directory_for_logins_is_made_private(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o755)
    assert private(tmp_path / "run").stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with pytest.raises(PlatformRefused):
        private(tmp_path / "link")


def test_a_record_says_who_opened_a_login_where_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    target = Target("far", "centre.edu", tmp_path, user="me", port=2222)
    record = new_record(target, 4711)
    record.write(target.record)
    assert target.record.stat().st_mode & 0o777 == 0o600
    assert read_record(target.record) == record
    assert logins(tmp_path) == [record]
    assert record.target == "me@centre.edu:2222"
    assert elsewhere(target) is None


def test_a_login_of_another_machine_is_said_to_be_there(tmp_path: Path) -> None:
    target = Target("far", "centre.edu", tmp_path)
    new_record(target, 4711).write(target.record)
    target.record.write_text(target.record.read_text().replace('"uid": ', '"uid": 9'))
    error = elsewhere(target)
    assert error is not None
    assert "can be used only there" in error.message


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"opened": 3}'])
def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    assert read_record(tmp_path / "a.json") is None


def test_small_files_travel_together_up_to_a_limit() -> None:
    entries = [TransferEntry(Path("x"), "x", 100_000, 0o644)] * 100 + [TransferEntry(Path("y"), "y", 1 << 30, 0o644)]
    made = list(groups(small(entries)))
    assert sum(len(group) for group in made) == 100
    assert all(sum(entry.size for entry in group) <= 1 << 22 for group in made)


def test_what_has_arrived_of_another_content_has_another_name() -> None:
    assert part_name("a/b", "1") != part_name("a/b", "2")
    assert part_name("a/b", "1").startswith("a/.sublet-part-")
    assert len(part_name("n" * 255, "1")) < 40


def test_a_failed_command_is_refused_in_its_own_words() -> None:
    with pytest.raises(PlatformRefused, match="no such job"):
        read_printed(Outcome(1, b"", b"no such job\n"))
    with pytest.raises(PlatformRefused, match="exit code 9"):
        read_printed(Outcome(9, b"", b""))
