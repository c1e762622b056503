"""Runs the services of a Compose file as one job: a container each, in one network. Travels with the job.

A container that does nothing holds the network; services join it, find one another by name, and start in order. When
all services that no other depends on have ended, the rest is stopped. The exit code is the first one that isn't 0.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import IO, Any

from sublet.kernel.container_network import Network, find_program, is_about_network
from sublet.kinds.inside import container_runner as containers
from sublet.kinds.inside import container_tools as tools
from sublet.kinds.inside.compose_volumes import BadVolume, place_volumes, refuse_nested
from sublet.kinds.inside.container_images import NoImage, have_image, own_name, say
from sublet.kinds.inside.container_port import ask_tool, open_gate
from sublet.kinds.inside.container_start import KEPT, NotStarted, find_why_unstarted, find_words
from sublet.kinds.inside.container_tools import Plan, ToolImage
from sublet.kinds.inside.container_variables import quietly
from sublet.kinds.inside.inner_port import InnerPort

PLAN = ".sublet/compose.json"
COMPLETED = "service_completed_successfully"
LOOK = 0.1  # seconds


class ComposedService:
    """One service, and its process once it was started."""

    def __init__(self, plan: dict[str, Any]) -> None:
        """Prepare a service without image or process."""
        self.plan, self.name = plan, str(plan["service"])
        self.image = ToolImage(own_name(plan["name"]), temporary=True)  # what may exist partly if it is stopped early
        self.process: subprocess.Popen[bytes] | None = None
        self.code: int | None = None
        self._end = b""
        self._pumps: list[threading.Thread] = []

    def start(self, holder: str) -> None:
        """Start the service in the holder's network."""
        argv, environment = containers.command(self.plan, self.image, Network(f"container:{holder}", ""))
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(argv, env=environment, **streams)  # type: ignore[call-overload]
        for source, number in ((self.process.stdout, 1), (self.process.stderr, 2)):
            thread = threading.Thread(target=self._pump, args=(source, number), daemon=True)
            thread.start()
            self._pumps.append(thread)

    def _pump(self, source: IO[bytes], number: int) -> None:
        """Pass on its output, each line prefixed with the service's name."""
        for line in source:
            self._end = (self._end + line)[-KEPT:] if number == 2 else self._end
            os.write(number, f"{self.name} | ".encode() + line.rstrip(b"\n") + b"\n")

    def look(self) -> None:
        """Check whether the service has ended; raise NotStarted if it couldn't be started at all."""
        if self.process is None or self.code is not None or (code := self.process.poll()) is None:
            return
        for thread in self._pumps:
            thread.join(1.0)
        if why := find_why_unstarted(self.plan, code, self.process.pid, self._end.decode(errors="replace")):
            raise NotStarted(f"the service {self.name}: {why}")
        self.code = containers.code_of(code)


def main() -> int:
    """Run what `.sublet/compose.json` describes."""
    with open(PLAN, encoding="utf-8") as file:
        plan: dict[str, Any] = json.load(file)
    services = [ComposedService(each) for each in plan["services"]]
    holder = plan["holder"]
    containers.hide_version_2(holder)
    signal.signal(signal.SIGTERM, containers.on_term)
    try:
        prepare(plan, services)
        return run_in_network(plan, services)
    except containers.Stopped:
        return 128 + signal.SIGTERM
    except (NoImage, BadVolume) as why:
        say(str(why))
        return containers.not_run(holder, "staging-failed", str(why))
    except (NotStarted, OSError) as why:
        say(f"it could not be started: {why}")
        return containers.not_run(holder, "not-started", str(why))
    finally:
        clean(plan, services)


def prepare(plan: dict[str, Any], services: list[ComposedService]) -> None:
    """Prepare all volumes and images before anything runs."""
    for service in services:
        os.makedirs(service.plan["work"], exist_ok=True)
        service.plan["mounts"] = place_volumes(plan, service.plan)
    refuse_nested([mount for service in services for mount in service.plan["mounts"]])
    for service in services:
        service.image = have_image(service.plan)


def run_in_network(plan: dict[str, Any], services: list[ComposedService]) -> int:
    """Run the services in the first network that can be made here."""
    holder = make_holder(plan, services)
    secret = os.environ.pop("SUBLET_SECRET", "")
    networks = containers.list_networks(holder)
    for number, network in enumerate(networks):
        with closing(InnerPort()) if holder["port"] and network.is_none else nullcontext() as inner:
            process = start_holder(holder, network)
            if why := wait_for_holder(holder, process):
                containers.remove(holder["paths"]["podman"], holder["name"])
                if number + 1 < len(networks) and is_about_network(why):
                    continue
                raise NotStarted(why)
            if network.is_none:
                say(f"the services have {network.words}, but one another")
            if holder["port"]:
                threading.Thread(target=open_gate, args=(holder, process, secret, inner), daemon=True).start()
            return run_services(services, holder["name"])
    raise AssertionError  # there is always a network to try


def make_holder(plan: dict[str, Any], services: list[ComposedService]) -> dict[str, Any]:
    """Make the container that holds the network, with only a program that waits."""
    holder: dict[str, Any] = plan["holder"]
    waiting = find_program("catatonit")
    if not waiting:
        raise NotStarted("there is no catatonit, which Podman uses to hold what containers share")
    os.makedirs(holder["image"], exist_ok=True)
    shutil.copy(waiting, f"{holder['image']}/pause")
    os.makedirs(work := f"{plan['session']}/compose/.holder", exist_ok=True)
    hosts = [service.name for service in services]
    nothing = {"command": [], "environment": {}, "mounts": [], "places": [], "inside": "/sublet/work", "start": "/"}
    holder.update(nothing, entrypoint=["/pause", "-P"], work=work, hosts=hosts)
    return holder


def start_holder(holder: Plan, network: Network) -> subprocess.Popen[bytes]:
    """Start the container that holds the network."""
    os.makedirs(holder["private"], mode=0o700, exist_ok=True)
    machine = replace(containers.machine_of(holder, network), init=False, inherits=False)
    with open(lines := f"{holder['private']}/environment", "w", encoding="ascii"):
        pass
    argv = tools.podman(holder, ToolImage(directory=holder["image"]), machine, lines)
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def wait_for_holder(holder: Plan, process: subprocess.Popen[bytes]) -> str:
    """Wait until the holder runs; return Podman's reason if it doesn't, or an empty string."""
    while process.poll() is None:
        if ask_tool(holder, "inspect", "--format", "{{.State.Running}}", holder["name"]) == "true":
            return ""
        time.sleep(LOOK)
    words = process.stderr.read().decode(errors="replace") if process.stderr else ""
    return find_words(words) or words.strip()[-500:] or "the container that holds the network ended"


def run_services(services: list[ComposedService], holder: str) -> int:
    """Start each service when its conditions are met, until all have ended that no other depends on."""
    needed = {name for service in services for name in service.plan["after"]}
    last = [service for service in services if service.name not in needed]
    by_name = {service.name: service for service in services}
    while any(service.code is None for service in last):
        for service in services:
            service.look()
            if service.process is None and service.code is None:
                start_if_it_may(service, by_name, holder)
        time.sleep(LOOK)
    return next((service.code for service in services if service in last and service.code), 0)


def start_if_it_may(service: ComposedService, others: dict[str, ComposedService], holder: str) -> None:
    """Start a service once its conditions are met; if they never can be, end it."""
    for name, condition in service.plan["after"].items():
        other = others[name]
        if condition == COMPLETED and other.code:
            say(f"{service.name} was not started, as {name} failed with {other.code}")
            service.code = other.code
            return
        if other.process is None or (condition == COMPLETED and other.code is None):
            if other.process is None and other.code is not None:
                service.code = other.code
            return
    service.start(holder)


def clean(plan: dict[str, Any], services: list[ComposedService]) -> None:
    """Stop what still runs, last first, and remove everything."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    holder = plan["holder"]
    running = [each.plan["name"] for each in reversed(services) if each.process and each.process.poll() is None]
    if running:
        quietly(holder["paths"]["podman"], "stop", "--time", str(containers.STOP_SECONDS), *running)
    for service in services:
        containers.clean(service.plan, service.image)
    containers.clean({"command": [], "environment": {}, "mounts": [], "work": os.getcwd(), **holder}, ToolImage())
    for folder in ("compose", "volumes"):
        shutil.rmtree(f"{plan['session']}/{folder}", ignore_errors=True)
