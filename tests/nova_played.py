"""A project of an OpenStack that is played: the few calls that the platform makes, and answers that get lost."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from sublet.platforms.openstack.guest.sealed import write_line

AUTH = "https://cloud.example/v3"
PLACES = {kind: f"https://cloud.example/{kind}" for kind in ("compute", "image", "network")}
IMAGE = "11111111-2222-4333-8444-555555555555"
FLAVORS = [
    {"id": "1", "name": "tiny", "vcpus": 1, "ram": 320, "disk": 1},
    {"id": "2", "name": "wide", "vcpus": 4, "ram": 4096, "disk": 20},
    {"id": "3", "name": "diskless", "vcpus": 1, "ram": 320, "disk": 0},
    {"id": "4", "name": "gpus", "vcpus": 4, "ram": 4096, "disk": 20},
]
SPECS = {
    "4": {"pci_passthrough:alias": "gpu-a100:2", "trait:CUSTOM_SSD": "required", "trait:CUSTOM_DRIVER_550": "required"}
}


@dataclass
class PlayedNova:
    """What it has, and what it does wrong."""

    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    floating: dict[str, dict[str, Any]] = field(default_factory=dict)
    consoles: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=lambda: {"maxTotalCores": 8, "maxTotalInstances": 3})
    before: Callable[[str, str], httpx2.Response | None] = lambda method, path: None
    loses: str = ""  # "before": the call is lost; "after": its answer is
    refuses_delete: bool = False

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        """One call."""
        path = request.url.path
        self.calls.append(f"{request.method} {path}")
        if answer := self.before(request.method, path):
            return answer
        body = json.loads(request.content) if request.content else {}
        if path.endswith("/auth/tokens"):
            return self.give_token()
        kind, _, rest = path.removeprefix("/").partition("/")
        if kind == "image":
            return answer_with({"images": [{"id": IMAGE, "name": "guest", "min_ram": 0, "min_disk": 0}]})
        if kind == "network":
            return self.network(request, rest.split("/")[1:], body)
        return self.compute(request, rest, body)

    def network(self, request: httpx2.Request, path: list[str], body: dict[str, Any]) -> httpx2.Response:
        """As Neutron does: every server has a port, and floating IPs are on this machine's loopback."""
        match request.method, path:
            case "GET", ["networks"]:
                return answer_with({"networks": [{"id": f"net-{request.url.params['name']}"}]})
            case "GET", ["ports"]:
                return answer_with({"ports": [{"id": f"port-of-{request.url.params['device_id']}"}]})
            case "GET", ["floatingips"]:
                return answer_with({"floatingips": list(self.floating.values())})
            case "POST", ["floatingips"]:
                id = f"ip-{len(self.calls)}"
                self.floating[id] = {**body["floatingip"], "id": id, "floating_ip_address": "127.0.0.1"}
                return httpx2.Response(201, json={"floatingip": self.floating[id]})
            case "DELETE", ["floatingips", id]:
                self.floating.pop(id, None)
                return httpx2.Response(204)
        return refuse(404, "NeutronError")

    def give_token(self) -> httpx2.Response:
        """As Keystone does."""
        catalog = [
            {"type": kind, "endpoints": [{"interface": "public", "region": "here", "url": place}]}
            for kind, place in PLACES.items()
        ]
        expires = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        token = {"expires_at": expires, "project": {"name": "sky"}, "user": {"name": "alice"}, "catalog": catalog}
        return httpx2.Response(201, json={"token": token}, headers={"X-Subject-Token": "t0ken"})

    def compute(  # noqa: C901 (a table of calls)
        self, request: httpx2.Request, path: str, body: dict[str, Any]
    ) -> httpx2.Response:
        """As Nova does."""
        match request.method, path.split("/"):
            case "GET", ["limits"]:
                return answer_with({"limits": {"absolute": self.limits}})
            case "GET", ["flavors", "detail"]:
                return answer_with({"flavors": FLAVORS})
            case "GET", ["flavors", flavor, "os-extra_specs"]:
                return answer_with({"extra_specs": SPECS.get(flavor, {})})
            case "GET", ["servers", "detail"]:
                name = request.url.params["name"].lstrip("^").replace("\\", "")
                return answer_with(
                    {"servers": [each for each in self.servers.values() if each["name"].startswith(name)]}
                )
            case "GET", ["servers", id]:
                return answer_with({"server": self.servers[id]}) if id in self.servers else refuse(404, "itemNotFound")
            case "POST", ["servers"]:
                return self.create(body["server"])
            case "DELETE", ["servers", id]:
                if not self.refuses_delete:
                    self.servers.pop(id, None)
                return httpx2.Response(204)
            case "POST", ["servers", id, "action"]:
                return self.act(id, body)
            case "GET", ["os-keypairs"]:
                return answer_with({"keypairs": [{"keypair": {"name": name}} for name in sorted(self.keys)]})
            case "POST", ["os-keypairs"]:
                self.keys.add(body["keypair"]["name"])
                return answer_with({"keypair": {}})
            case "DELETE", ["os-keypairs", name]:
                self.keys.discard(name)
                return httpx2.Response(202)
        return refuse(404, "itemNotFound")

    def create(self, server: dict[str, Any]) -> httpx2.Response:
        """A server, if its key is there."""
        if self.loses == "before":
            raise httpx2.ReadError("the connection was cut")
        if server["key_name"] not in self.keys:
            return refuse(400, "badRequest", "Invalid key_name provided.")
        id = f"vm-{len(self.calls)}"
        made = {**server, "id": id, "status": "BUILD", "created": datetime.now(UTC).isoformat()}
        self.servers[id] = made | {"OS-EXT-STS:task_state": "scheduling"}
        if self.loses == "after":
            raise httpx2.ReadError("the connection was cut")
        return httpx2.Response(202, json={"server": {"id": id, "adminPass": server["adminPass"]}})

    def act(self, id: str, body: dict[str, Any]) -> httpx2.Response:
        """A console, or an action."""
        if id not in self.servers:
            return refuse(404, "itemNotFound")
        if "os-getConsoleOutput" in body:
            return answer_with({"output": self.consoles.get(id, "")})
        return httpx2.Response(202)

    @property
    def server(self) -> dict[str, Any]:
        """The only one."""
        (only,) = self.servers.values()
        return only

    def print(self, label: str, value: object) -> None:
        """Have the only server's guest write a piece to its console."""
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        line = write_line(bytes.fromhex(self.server["adminPass"]), label, content).decode()
        self.consoles[self.server["id"]] = self.consoles.get(self.server["id"], "") + line

    @property
    def user_data(self) -> str:
        """What the only server was given."""
        return base64.b64decode(self.server["user_data"]).decode()


def answer_with(value: object) -> httpx2.Response:
    """An answer."""
    return httpx2.Response(200, json=value)


def refuse(status: int, kind: str, words: str = "not found") -> httpx2.Response:
    """A refusal, as Nova wraps it."""
    return httpx2.Response(status, json={kind: {"code": status, "message": words}})
