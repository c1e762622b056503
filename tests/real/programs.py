"""Runs the program of a way as a platform does: files below the working directory, words, environment."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from sublet.booking.model.job import Mount, Program
from sublet.booking.model.request import GIB, Executable
from sublet.booking.model.shape import Amounts, Shape
from sublet.kinds.port import Kind, Setting

TOOLS = {"python3": sys.executable, "sh": "/bin/sh"}


class Place:
    """A session's directory."""

    def __init__(self, directory: Path) -> None:
        """Make it."""
        self.directory = directory
        self.work = directory / "work"
        self.work.mkdir()

    def setting(self, tools: dict[str, str], **changes: Any) -> Setting:
        """What the platform would say of it."""
        mounts: tuple[Mount, ...] = changes.pop("mounts", ())
        shape = Shape(changes.pop("cores", 2), GIB)
        amounts = Amounts(shape, 1, timedelta(minutes=5), changes.pop("parts", 1))
        where = (str(self.work), str(self.directory))
        return Setting(*where, amounts, mounts, tools, **changes)

    def program(self, kind: Kind, executable: Executable, tools: dict[str, str], **changes: Any) -> Program:
        """What the best way makes of an executable, with its files written."""
        known = TOOLS | tools
        program = kind.ways(executable, known)[0].program(self.setting(known, **changes))
        for name, content in program.files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return program

    def start(self, program: Program, **environment: str) -> subprocess.Popen[bytes]:
        """Start it."""
        env = {**os.environ, **program.environment, **environment}
        pipe = subprocess.PIPE
        return subprocess.Popen(program.argv, cwd=self.work, env=env, stdout=pipe, stderr=pipe)

    def run(self, program: Program, **environment: str) -> tuple[int, str, str]:
        """Run it to its end: exit code, output, error output."""
        with self.start(program, **environment) as process:
            out, err = process.communicate(timeout=120)
        return process.returncode, out.decode(), err.decode()
