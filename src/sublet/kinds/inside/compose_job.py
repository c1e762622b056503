"""Runs the services of a Compose file as one job: each a container, all in one network. Travels with the job.

A container that does nothing holds the network; services join it, find one another by their names, and are started in
their order. When all on which no other depends have ended, the rest is stopped. The code is the first that is not 0.
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
    """One service, and its process once it has been started."""

    def __init__(self, plan: dict[str, Any]) -> None:
        """It has neither an image nor a process yet."""
        self.plan, self.name = plan, str(plan["service"])
        self.image = ToolImage(own_name(plan["name"]), temporary=True)  # what may be half there if it is stopped early
        self.process: subprocess.Popen[bytes] | None = None
        self.code: int | None = None
        self._end = b""
        self._pumps: list[threading.Thread] = []

    def start(self, holder: str) -> None:
        """Start it, in the network that the holder has."""
        argv, environment = containers.command(self.plan, self.image, Network(f"container:{holder}", ""))
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(argv, env=environment, **streams)  # type: ignore[call-overload]
        for source, number in ((self.process.stdout, 1), (self.process.stderr, 2)):
            thread = threading.Thread(target=self._pump, args=(source, number), daemon=True)
            thread.start()
            self._pumps.append(thread)

    def _pump(self, source: IO[bytes], number: int) -> None:
        """Pass on what it prints, each line with its name before it."""
        for line in source:
            self._end = (self._end + line)[-KEPT:] if number == 2 else self._end
            os.write(number, f"{self.name} | ".encode() + line.rstrip(b"\n") + b"\n")

    def look(self) -> None:
        """See whether it has ended; NotStarted if it could not be started at all."""
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
    """Have all images and volumes before anything runs."""
    for service in services:
        os.makedirs(service.plan["work"], exist_ok=True)
        service.plan["mounts"] = place_volumes(plan, service.plan)
    refuse_nested([mount for service in services for mount in service.plan["mounts"]])
    for service in services:
        service.image = have_image(service.plan)


def run_in_network(plan: dict[str, Any], services: list[ComposedService]) -> int:
    """Run them in the first network that can be made here."""
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
    raise AssertionError  # there always is a network to try


def make_holder(plan: dict[str, Any], services: list[ComposedService]) -> dict[str, Any]:
    """The container that holds the network, with nothing in it but a program that waits."""
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
    """Start it."""
    os.makedirs(holder["private"], mode=0o700, exist_ok=True)
    machine = replace(containers.machine_of(holder, network), init=False, inherits=False)
    with open(lines := f"{holder['private']}/environment", "w", encoding="ascii"):
        pass
    argv = tools.podman(holder, ToolImage(directory=holder["image"]), machine, lines)
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def wait_for_holder(holder: Plan, process: subprocess.Popen[bytes]) -> str:
    """Wait until it runs; why it doesn't, in Podman's words."""
    while process.poll() is None:
        if ask_tool(holder, "inspect", "--format", "{{.State.Running}}", holder["name"]) == "true":
            return ""
        time.sleep(LOOK)
    words = process.stderr.read().decode(errors="replace") if process.stderr else ""
    return find_words(words) or words.strip()[-500:] or "the container that holds the network ended"


def run_services(services: list[ComposedService], holder: str) -> int:
    """Start each when it may, until all are over on which no other depends."""
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
    """Start it once what it waits for is so; what can never be so ends it."""
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
    """Stop what still runs, the last first, and leave nothing of any of them."""
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
