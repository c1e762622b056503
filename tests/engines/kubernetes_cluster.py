"""One real Kubernetes for all tests of a run: people, namespaces, quotas, and what kubectl sees of it."""

from __future__ import annotations

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
    carol, robot = {**subject, "name": "carol"}, {"kind": "ServiceAccount", "name": "gateway", "namespace": name}
    objects.append({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "gateway", "namespace": name}})
    objects.append(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "sublet", "namespace": name},
            "subjects": [subject, carol, robot],
            "roleRef": {"kind": "Role", "name": ROLE["metadata"]["name"], "apiGroup": "rbac.authorization.k8s.io"},
        }
    )
    if quota:
        metadata = {"name": "most", "namespace": name}
        objects.append({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": quota}})
    cluster.apply(*objects)
    return Namespace(cluster, name, folder)
