"""Hands a container its variables in files, never as words of a command. Travels with the job: Python alone."""

from __future__ import annotations

import os
import subprocess

from sublet.kinds.inside import container_tools as tools
from sublet.kinds.inside.container_start import NotStarted
from sublet.kinds.inside.container_tools import Plan


def quietly(*argv: str) -> bool:
    """Call a tool to clean up, whatever it says; whether it did it."""
    nothing = subprocess.DEVNULL
    return subprocess.run(argv, stdin=nothing, stdout=nothing, stderr=nothing, check=False).returncode == 0


def keep_secrets(plan: Plan, values: dict[str, str]) -> None:
    """Hand Podman the variables of several lines in files, so that they are no words of a command."""
    podman = plan["paths"]["podman"]
    for number, (name, value) in enumerate(values.items()):
        path, secret = f"{plan['private']}/variable", tools.secret_name(plan, number)
        write_private(path, value)
        quietly(podman, "secret", "rm", secret)  # of an earlier try
        if not quietly(podman, "secret", "create", secret, path):
            raise NotStarted(f"podman could not be given the variable {name}, which has several lines")
        os.unlink(path)


def remove_secrets(podman: str, name: str) -> None:
    """Remove the variables that Podman was handed for a container."""
    listed = subprocess.run([podman, "secret", "ls", "--format={{.Name}}"], capture_output=True, text=True, check=False)
    ours = [secret for secret in listed.stdout.split() if secret.rpartition("-")[0] == name]
    if ours:
        quietly(podman, "secret", "rm", *ours)


def add_multiline(environment: dict[str, str], values: dict[str, str]) -> dict[str, str]:
    """The environment of the docker command, with the variables of several lines that the container gets from it."""
    for name in values:
        if not tools.can_be_given_to_docker(name, environment):
            raise NotStarted(f"docker can't be given {name} with several lines: use another name, or a file")
    return {**environment, **values}


def write_private(path: str, text: str) -> None:
    """A file that only we can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
