"""Access to an API server by a kubeconfig, a token or a pod's service account.

A kubeconfig may name a token, a file with one, a client certificate, or a program that makes credentials (as clouds and
OpenID Connect do). Tokens are read again when they are needed, because others renew them.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sublet.kernel.secret_file import find_token_fault, read_secret_file
from sublet.platforms.kubernetes.credential_plugin import CredentialPlugin, present_certificate, read_plugin
from sublet.platforms.kubernetes.kubeconfig import (
    BadAccess,
    KubeconfigEntry,
    list_kubeconfigs,
    read_kubeconfig,
    read_text,
)

IN_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")
OLD_WAYS = ("auth-provider", "username", "password")


@dataclass(frozen=True)
class ClusterAccess:
    """The address of an API server, and the credentials for it."""

    server: str
    namespace: str
    tls: ssl.SSLContext
    token: Callable[[], str] = str
    proxy: str = ""
    files: tuple[Path, ...] = ()  # files with certificates and keys, which are read only once
    renew: Callable[[], bool] = lambda: False  # forgets credentials that were refused; whether others can be made

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every call."""
        token = self.token()
        if token and (fault := find_token_fault(token)):
            raise BadAccess(f"its token can't be sent: {fault}")
        return {"Authorization": f"Bearer {token}"} if token else {}


@dataclass(frozen=True)
class AccessSettings:
    """The settings of a platform that concern access."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    server: str = ""
    authority: str = ""
    token_file: str = ""


def open_access(settings: AccessSettings, environment: Mapping[str, str] = os.environ) -> ClusterAccess:
    """Open access by a server and a token file, else by a kubeconfig, else by the current pod's service account."""
    if settings.server:
        access = _by_token(settings)
    elif files := list_config_files(settings, environment):
        access = _by_config(files, settings.context)
    else:
        access = _by_service_account(environment)
    named = settings.namespace or access.namespace
    if not access.server.startswith("https://"):
        raise BadAccess(f"{access.server} is not an https address")
    return replace(access, server=access.server.rstrip("/"), namespace=named or "default")


def list_config_files(settings: AccessSettings, environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the kubeconfig files by which access is opened; none if it is opened otherwise."""
    if settings.server or (not settings.kubeconfig and _is_in_pod(environment)):
        return ()
    return list_kubeconfigs(settings.kubeconfig, environment)


def _is_in_pod(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and (IN_POD / "token").exists()


def _by_token(settings: AccessSettings) -> ClusterAccess:
    if not settings.token_file:
        raise BadAccess("`server` needs a `token_file`: a file that nobody else can read, with the token in it")
    authority = Path(settings.authority).expanduser() if settings.authority else None
    token_file = Path(settings.token_file).expanduser()
    files = (authority,) if authority else ()
    return ClusterAccess(settings.server, "", _trust(authority), lambda: _read_token(token_file), files=files)


def _read_token(file: Path) -> str:
    try:
        return read_secret_file(file)
    except ValueError as error:
        raise BadAccess(str(error)) from error


def _by_service_account(environment: Mapping[str, str]) -> ClusterAccess:
    host = environment["KUBERNETES_SERVICE_HOST"]
    host = f"[{host}]" if ":" in host else host
    server = f"https://{host}:{environment.get('KUBERNETES_SERVICE_PORT', '443')}"
    namespace, authority = read_text(IN_POD / "namespace").strip(), IN_POD / "ca.crt"
    return ClusterAccess(server, namespace, _trust(authority), _token_reader(IN_POD / "token"), files=(authority,))


def _by_config(files: Sequence[Path], name: str) -> ClusterAccess:
    config = read_kubeconfig(files)
    try:
        context = config.choose_context(name)
        cluster = config.find("clusters", context["cluster"])
        user = config.find("users", context["user"])
        server, proxy = cluster.content["server"], cluster.content.get("proxy-url", "")
        tls = _trust_cluster(cluster)
        token, renew = _enter(user, tls)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadAccess(f"{config.source} is no kubeconfig that can be used: {error} is missing in it") from error
    pairs = ((cluster, "certificate-authority"), (user, "client-certificate"), (user, "client-key"))
    loaded = tuple(entry.folder / entry.content[key] for entry, key in pairs if entry.content.get(key))
    return ClusterAccess(server, context.get("namespace", ""), tls, token, proxy, loaded, renew)


def _trust_cluster(entry: KubeconfigEntry) -> ssl.SSLContext:
    cluster = entry.content
    if cluster.get("insecure-skip-tls-verify"):
        raise BadAccess("it says insecure-skip-tls-verify: give it the cluster's certificate-authority instead")
    if data := cluster.get("certificate-authority-data"):
        return _trust_text(_decode(data).decode())
    authority = cluster.get("certificate-authority")
    return _trust(entry.folder / authority if authority else None)


def _trust(authority: Path | None) -> ssl.SSLContext:
    return _trust_text(read_text(authority) if authority else None)


def _trust_text(authority: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=authority)
    except ssl.SSLError as error:
        raise BadAccess(f"the certificate of its authority can't be read: {error}") from error


def _enter(entry: KubeconfigEntry, tls: ssl.SSLContext) -> tuple[Callable[[], str], Callable[[], bool]]:
    """Load the client certificate into the TLS context, if any; return what provides the token, and what renews it."""
    user, folder = entry.content, entry.folder
    if old := [way for way in OLD_WAYS if way in user]:
        raise BadAccess(f"its user signs in by {old[0]}, which Kubernetes has dropped; use a token or `exec`")
    certificate = _bytes_of(user, "client-certificate", folder)
    if certificate:
        present_certificate(tls, certificate, _bytes_of(user, "client-key", folder))
    if user.get("tokenFile"):
        return _token_reader(folder / user["tokenFile"]), ClusterAccess.renew
    if user.get("exec"):
        plugin = CredentialPlugin(read_plugin(user["exec"], folder), tls)
        return plugin.token, plugin.forget
    token = str(user.get("token") or "")
    return lambda: token, ClusterAccess.renew


def _bytes_of(user: Mapping[str, Any], name: str, folder: Path) -> bytes:
    if data := user.get(f"{name}-data"):
        return _decode(data)
    return read_text(folder / user[name]).encode() if user.get(name) else b""


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError) as error:
        raise BadAccess(f"a certificate or key in it is not base64: {error}") from error


def _token_reader(file: Path) -> Callable[[], str]:
    return lambda: read_text(file).strip()
