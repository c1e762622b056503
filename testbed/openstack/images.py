"""A person's own image in the cloud, as they upload one to Glance."""

from __future__ import annotations

import json
import ssl
import urllib.request
from http.client import HTTPResponse
from pathlib import Path

from testbed.openstack.cloud import PASSWORD, Cloud
from testbed.openstack.disk import COMMAND_LINE, DiskParts

PATIENCE = 300  # seconds for one call


def upload_disk(cloud: Cloud, person: str, name: str, parts: DiskParts, project: str = "sky") -> str:
    """Have an image with its kernel and its initramfs; its id."""
    glance = Glance(cloud, person, project)
    kernel = glance.upload(f"{name}-kernel", parts.kernel, disk_format="aki", container_format="aki")
    ramdisk = glance.upload(f"{name}-ramdisk", parts.ramdisk, disk_format="ari", container_format="ari")
    started = {"kernel_id": kernel, "ramdisk_id": ramdisk, "os_command_line": COMMAND_LINE}
    least = {"min_disk": 5, "min_ram": 1024}
    return glance.upload(name, parts.disk, disk_format="qcow2", container_format="bare", **started, **least)


class Glance:
    """Glance, for one person."""

    def __init__(self, cloud: Cloud, person: str, project: str) -> None:
        """Signed in."""
        self.trust = ssl.create_default_context(cafile=str(cloud.authority))
        self.address = f"https://{cloud.address}:9292/v2/images"
        domain = {"domain": {"id": "default"}}
        user = {"name": person, "password": PASSWORD, **domain}
        identity = {"methods": ["password"], "password": {"user": user}}
        auth = {"identity": identity, "scope": {"project": {"name": project, **domain}}}
        with self._call("POST", f"{cloud.auth_url}/auth/tokens", json.dumps({"auth": auth}).encode()) as answer:
            self.token = str(answer.headers["X-Subject-Token"])

    def upload(self, name: str, file: Path, **properties: object) -> str:
        """An image that the project may use."""
        described = json.dumps({"name": name, "visibility": "shared", **properties}).encode()
        with self._call("POST", self.address, described) as answer:
            id = str(json.load(answer)["id"])
        with file.open("rb") as content:
            size = {"Content-Type": "application/octet-stream", "Content-Length": str(file.stat().st_size)}
            self._call("PUT", f"{self.address}/{id}/file", content, **size).close()
        return id

    def _call(self, method: str, address: str, body: object, **headers: str) -> HTTPResponse:
        told = {"Content-Type": "application/json", "X-Auth-Token": getattr(self, "token", ""), **headers}
        request = urllib.request.Request(address, body, told, method=method)  # type: ignore[arg-type]
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=PATIENCE, context=self.trust)
        return answer
