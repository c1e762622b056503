"""One real Kubernetes for all tests of a run: people, namespaces, quotas, and what kubectl sees of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from testbed.kubernetes.cluster import Cluster

from sublet.platforms.kubernetes.platform import Kubernetes

ROLE = yaml.safe_load((Path(__file__).parents[2] / "docs" / "platforms" / "kubernetes-role.yaml").read_text())
IMAGES = {"image": "localhost/python:3", "helper": "localhost/busybox:1", "image_pull": "Never"}
HELPER = "docker.io/library/busybox:1.36-musl"  # the default of the settings
SETTLED = 60.0  # seconds
SEEING: tuple[dict[str, Any], ...] = (  # dora sees all nodes and pods, as people at many places do
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "see"},
        "rules": [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "see"},
        "subjects": [{"kind": "User", "name": "dora", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "see", "apiGroup": "rbac.authorization.k8s.io"},
    },
)
numbers = count(1)


@dataclass(frozen=True)
class Namespace:
    """A namespace of its own, which a person may use as the docs say."""

    cluster: Cluster
    name: str
    folder: Path

    def list_left(self) -> list[str]:
        """What of a session could be there."""
        return [name for kind in ("jobs", "pods", "secrets") for name in self._list(kind)]

    def _list(self, kind: str) -> list[str]:
        words = ("-n", self.name, "get", kind, "-l", "app.kubernetes.io/managed-by=sublet", "-o", "name")
        return self.cluster.kubectl(*words).split()

    def settings(self, person: str = "alice", **more: Any) -> dict[str, Any]:
        """Those of a platform, for someone with a kubeconfig."""
        file = self.folder / f"{self.name}-{person}"
        self.cluster.write_config(file, person, self.name)
        return {"kubeconfig": str(file), "grace": "2s", **IMAGES, **more}

    def platform(self, person: str = "alice", **more: Any) -> Kubernetes:
        """A platform for someone."""
        return Kubernetes(name="cluster", **self.settings(person, **more))


def make_namespace(cluster: Cluster, folder: Path, quota: Mapping[str, str] | None = None) -> Namespace:
    """A new namespace in which alice has the documented role, and bob may do nothing."""
    name = f"trial-{next(numbers)}"
    objects: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}]
    objects.append({**ROLE, "metadata": {**ROLE["metadata"], "namespace": name}})
    subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
    dora = {**subject, "name": "dora"}
    carol, robot = {**subject, "name": "carol"}, {"kind": "ServiceAccount", "name": "gateway", "namespace": name}
    objects.append({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "gateway", "namespace": name}})
    objects.append(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "sublet", "namespace": name},
            "subjects": [subject, carol, dora, robot],
            "roleRef": {"kind": "Role", "name": ROLE["metadata"]["name"], "apiGroup": "rbac.authorization.k8s.io"},
        }
    )
    if quota:
        metadata = {"name": "most", "namespace": name}
        objects.append({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": quota}})
    cluster.apply(*objects, *SEEING)
    _wait_until_usable(cluster, name, bool(quota))
    return Namespace(cluster, name, folder)


def _wait_until_usable(cluster: Cluster, name: str, has_quota: bool) -> None:
    """Whoever gets a namespace of an administrator doesn't use it in the moment in which it is made.

    Until its controllers have seen it, pods are refused for want of a service account or of a quota's status, and a
    Job waits ten seconds before it tries again; and until the API server has seen the Role, nobody has it.
    """
    deadline = time.monotonic() + SETTLED
    while missing := _find_unsettled(cluster, name, has_quota):
        assert time.monotonic() < deadline, f"the namespace {name} has no {missing}"
        time.sleep(0.1)


def _find_unsettled(cluster: Cluster, name: str, has_quota: bool) -> str:
    listed = json.loads(cluster.kubectl("-n", name, "get", "serviceaccounts,resourcequotas", "-o", "json"))["items"]
    accounts = {each["metadata"]["name"] for each in listed if each["kind"] == "ServiceAccount" and each.get("secrets")}
    quotas = [each for each in listed if each["kind"] == "ResourceQuota" and each.get("status", {}).get("hard")]
    if not accounts >= {"default", "gateway"}:
        return "tokens of its service accounts"
    if has_quota and not quotas:
        return "status of its quota"
    allowed = cluster.ask_kubectl("-n", name, "auth", "can-i", "create", "jobs", "--as", "alice")
    return "" if allowed == "yes" else "role that counts"
