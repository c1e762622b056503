"""A user's program is checked by mypy --strict: what is right passes, and what is misspelt is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio
from datetime import datetime, timedelta, timezone

import sublet
from sublet import AsyncClient, Client, NoOffers, Session


def earliest(offers: sublet.Offers) -> sublet.Offer:
    return offers[0]


def main() -> int | None:
    print(sublet.__version__)
    with Client() as client:
        offers = client.ask(run=["python", "sim.py"], cores=2, memory="4GiB", time="10m", start="tomorrow 9am")
        client.ask("job.yaml", cores="4-16")
        client.ask({"run": "true"})
        try:
            session: Session = offers[0].accept()
        except NoOffers as error:
            print(error.advice)
            return 1
        for old in client.sessions(phase="FAILED", active=False):
            old.again(cores=8, set={"years": 20})
        session.wait(timeout=60).fetched()
        start = datetime(2027, 1, 1, tzinfo=timezone.utc)
        code = client.run(script="true", time=timedelta(minutes=5), start=start, choose=earliest).exit_code
        client.ask(corse=2)  # type: ignore[call-arg]
        client.run(run="true", cores=[2])  # type: ignore[arg-type]
        client.sessions(phasee="FAILED")  # type: ignore[call-arg]
        client.run(run="true").exitcode  # type: ignore[attr-defined]
        return code


async def later() -> bytes:
    async with AsyncClient() as client:
        session = await client.run(notebook="n.ipynb", parameters={"n": 3}, timeout=60)
        await client.run(notebok="n.ipynb")  # type: ignore[call-arg]
        return await session.result("out.csv")


main()
asyncio.run(later())
"""


def test_a_program_of_a_user_is_typed_throughout(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", "--follow-imports=silent"]
    words += [f"--cache-dir={tmp_path}/cache", "program.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
