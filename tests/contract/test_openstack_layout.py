"""In its virtual machine, a session's program has the places that it needs, and none that are root's."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.platforms.openstack.guest import session as guest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a machine's root lays out what its program has")


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A session's directory that another user may enter, unlike those of tests."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        place.chmod(0o755)
        monkeypatch.setattr(guest, "ROOT", str(place / "session"))
        monkeypatch.setattr(guest, "RUNTIME", str(place / "run"))
        for name in ("add_user", "add_ranges"):  # this machine's users stay as they are
            monkeypatch.setattr(guest, name, lambda *words: None)
        yield place / "session"


def run_as_user(root: Path, script: str) -> int:
    words = ["sh", "-c", script]
    done = subprocess.run(words, cwd=root, user=guest.USER, group=guest.USER, extra_groups=[], capture_output=True)
    return done.returncode


def test_a_kinds_own_program_can_say_why_it_did_not_begin_and_can_not_replace_what_root_reads(root: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz"):
        pass
    guest.lay_out({"awaits": False, "links": []}, packed.getvalue())
    (root / "stdout").write_bytes(b"")
    assert run_as_user(root, "echo staging-failed >unstarted && mkdir -p compose/server own/data own/config/cni") == 0
    assert run_as_user(root, f"touch {guest.RUNTIME}/socket") == 0
    assert run_as_user(root, "rm -f stdout") != 0
    assert run_as_user(root, "mv stdout elsewhere") != 0
