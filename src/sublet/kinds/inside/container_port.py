"""Admits visitors with the session's secret to a container's port. Travels with the job: standard library only."""

from __future__ import annotations

import os
import socket
import subprocess
from functools import partial

from sublet.kinds.inside import desktop_server, gate
from sublet.kinds.inside.container_tools import Plan
from sublet.kinds.inside.inner_port import InnerPort
from sublet.kinds.inside.listening import Connect, connect_to_socket, wait_for_server


def find_published(plan: Plan) -> Connect | None:
    """Return how to connect to the port that the tool has published on this machine; None before it has."""
    answer = ask_tool(plan, "port", plan["name"], f"{plan['port']}/tcp")
    host, _, port = answer.partition("\n")[0].rpartition(":")
    return partial(socket.create_connection, (host, int(port)), gate.PATIENCE) if port.isdigit() else None


def find_inner(inner: InnerPort, plan: Plan) -> Connect | None:
    """Return how to connect to a port inside a container without network; None before it runs."""
    pid = ask_tool(plan, "inspect", "--type", "container", "--format", "{{.State.Pid}}", plan["name"])
    return partial(inner.connect, int(pid), plan["port"]) if pid.isdigit() and pid != "0" else None


def ask_tool(plan: Plan, *words: str) -> str:
    """Run the tool and return its output; empty if it fails."""
    argv = [plan["paths"][plan["tool"]], *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()


def is_reached(plan: Plan) -> bool:
    """Whether something that the container serves is to be reached."""
    return bool(plan["port"] or plan.get("socket"))


def open_gate(plan: Plan, process: subprocess.Popen[bytes], secret: str, inner: InnerPort | None) -> None:
    """Serve visitors who present the session's secret, once the container's server listens."""
    find = partial(find_inner, inner, plan) if inner else partial(find_published, plan)
    if path := plan.get("socket"):
        reach: Connect = partial(connect_to_socket, path)
        connect = wait_for_server(lambda: reach, process)
    else:
        connect = wait_for_server(find, process)
    if connect:
        keeps, shows = bool(plan.get("keeps_path")), tuple(plan.get("shows", ()))
        door = gate.Door(secret, plan["base_url"], plan["path"], keeps_path=keeps, shows=shows)
        handle = desktop_server.show if plan.get("serves") == "vnc" else gate.forward
        gate.serve(int(os.environ["SUBLET_PORT"]), lambda visitor: handle(visitor, door, connect))
