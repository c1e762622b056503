"""CANFAR's own client, from an index, works with the server that Skaha's platform is tested against: the two agree."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.engines.environments import have_environment
from tests.skaha_server import TOKEN, serve_skaha

pytestmark = pytest.mark.engines
SCRIPT = """
import json, sys, time
from pydantic import SecretStr
from canfar.context import Context
from canfar.images import Images
from canfar.sessions import Session

about = {"url": sys.argv[1], "token": SecretStr(sys.argv[2])}
session = Session(**about)
said = {"context": Context(**about).resources(), "images": Images(**about).fetch(kind="headless")}
said["details"] = [image.id for image in Images(**about).details()]
words = {"cmd": "printenv", "args": "TEXT", "env": {"TEXT": "of canfar"}}
(id,) = session.create(name="try", image="skaha/terminal:1.1.2", cores=2, ram=4, kind="headless", **words)
deadline = time.monotonic() + 20
while session.info([id])[0]["status"] == "Running" and time.monotonic() < deadline:
    time.sleep(0.05)
said["info"], said["logs"] = session.info([id])[0], session.logs([id])[id]
said["events"] = session.events([id])
said["listed"] = [each["id"] == id for each in session.fetch(kind="headless")]
(lab,) = session.create(name="lab", image="skaha/astroml:24.07", kind="notebook")
said["connect"] = session.info([lab])[0]["connectURL"]
before = session.info([lab])[0]["expiryTime"]
said["renewed"] = session.renew([lab])[lab] and session.info([lab])[0]["expiryTime"] > before
said["destroyed"] = session.destroy([id, lab])
said["left"] = session.fetch()
print(json.dumps(said))
"""


def test_the_clients_own_calls_are_understood_and_its_answers_are_those_that_it_expects() -> None:
    environment = have_environment("canfar")
    with serve_skaha() as (skaha, url):
        words = [str(environment / "bin" / "python"), "-c", SCRIPT, url, TOKEN]
        home = {"HOME": "/nonexistent", "PATH": os.environ["PATH"]}
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=home)
        assert done.returncode == 0, done.stderr[-3000:]
        said = json.loads(done.stdout.strip().splitlines()[-1])
        calls = list(skaha.calls)
    assert said["context"]["cores"]["options"] == [1, 2, 4, 8, 16]
    assert said["images"] == ["images.canfar.net/skaha/terminal:1.1.2", "images.canfar.net/skaha/astroml:24.07"]
    assert said["details"] == said["images"]
    assert (said["info"]["status"], said["logs"]) == ("Succeeded", "of canfar\n")
    assert "FailedScheduling" in json.dumps(said["events"])
    assert said["listed"] == [True]
    assert said["connect"].startswith("https://ws-uv.canfar.net/session/notebook/")
    assert said["renewed"]
    assert all(said["destroyed"].values())
    assert said["left"] == []
    assert "POST session args&cmd&cores&env&image&name&ram&type" in calls, "as the platform calls it, too"
    for call in ("GET context", "GET image type", "GET session", "GET session type"):
        assert call in calls
