"""Passes variables to containers in files, never on the command line. Travels with the job: standard library only."""

from __future__ import annotations

import os
import subprocess

from sublet.kinds.inside import container_tools as tools
from sublet.kinds.inside.container_start import NotStarted
from sublet.kinds.inside.container_tools import Plan


def quietly(*argv: str) -> bool:
    """Run a tool silently; return whether it succeeded."""
    nothing = subprocess.DEVNULL
    return subprocess.run(argv, stdin=nothing, stdout=nothing, stderr=nothing, check=False).returncode == 0


def keep_secrets(plan: Plan, values: dict[str, str]) -> None:
    """Pass multi-line variables to Podman in files, so that they aren't on a command line."""
    podman = plan["paths"]["podman"]
    for number, (name, value) in enumerate(values.items()):
        path, secret = f"{plan['private']}/variable", tools.secret_name(plan, number)
        write_private(path, value)
        quietly(podman, "secret", "rm", secret)  # left by an earlier attempt
        if not quietly(podman, "secret", "create", secret, path):
            raise NotStarted(f"podman could not be given the variable {name}, which has several lines")
        os.unlink(path)


def remove_secrets(podman: str, name: str) -> None:
    """Remove the variables that Podman stores for a container."""
    listed = subprocess.run([podman, "secret", "ls", "--format={{.Name}}"], capture_output=True, text=True, check=False)
    ours = [secret for secret in listed.stdout.split() if secret.rpartition("-")[0] == name]
    if ours:
        quietly(podman, "secret", "rm", *ours)


def add_multiline(environment: dict[str, str], values: dict[str, str]) -> dict[str, str]:
    """Return the docker command's environment with the multi-line variables that the container takes from it."""
    for name in values:
        if not tools.can_be_given_to_docker(name, environment):
            raise NotStarted(f"docker can't be given {name} with several lines: use another name, or a file")
    return {**environment, **values}


def write_private(path: str, text: str) -> None:
    """Write a file that only we can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
