"""Programs that make credentials, named under `exec` in a kubeconfig, as clouds and OpenID Connect have them."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sublet.platforms.kubernetes.kubeconfig import BadAccess

PLUGIN_PATIENCE = 60  # seconds for a program to make credentials
SOON = timedelta(minutes=1)  # this long before they expire, credentials are made again
RECENT = 10.0  # seconds in which refused credentials aren't made again


def present_certificate(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a client certificate into a TLS context through a file in memory, as OpenSSL reads only files."""
    file = os.memfd_create("client", os.MFD_CLOEXEC)
    try:
        os.write(file, certificate + b"\n" + key)
        tls.load_cert_chain(f"/proc/self/fd/{file}")
    except ssl.SSLError as error:
        raise BadAccess(f"the client's certificate and key can't be used: {error}") from error
    finally:
        os.close(file)


@dataclass(frozen=True)
class PluginCommand:
    """The command that makes credentials, and its environment."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    hint: str  # how it is installed, as its kubeconfig says


def read_plugin(written: Any, folder: Path) -> PluginCommand:
    """Read the `exec` of a user in a kubeconfig; a command with a slash is relative to the kubeconfig."""
    try:
        version = written.get("apiVersion", "client.authentication.k8s.io/v1")
        info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
        more = {str(entry["name"]): str(entry["value"]) for entry in written.get("env") or ()}
        name = str(written["command"])
        words = [str(folder / name) if "/" in name else name, *map(str, written.get("args") or ())]
        hint = " ".join(str(written.get("installHint") or "").split())
    except (KeyError, TypeError, AttributeError) as error:
        raise BadAccess("its `exec` must have a `command`, and may have a list `args` and a list `env`") from error
    return PluginCommand(tuple(words), {**more, "KUBERNETES_EXEC_INFO": json.dumps(info)}, hint)


@dataclass
class CredentialPlugin:
    """A program that makes credentials, named under `exec` in a kubeconfig; they are kept until they expire."""

    command: PluginCommand
    tls: ssl.SSLContext
    _token: str = ""
    _until: datetime | None = None
    _made: float | None = None  # when, by the monotonic clock

    def token(self) -> str:
        """Return the token, made again shortly before it expires."""
        if self._made is None or (self._until and datetime.now(UTC) > self._until - SOON):
            self._make()
        return self._token

    def forget(self) -> bool:
        """Forget credentials that were refused, and return whether they were old enough to be made again."""
        if self._made is None or time.monotonic() - self._made < RECENT:
            return False
        self._made = None
        return True

    def _make(self) -> None:
        credential = read_credential(_run_plugin(self.command))
        if credential.certificate:
            present_certificate(self.tls, credential.certificate.encode(), credential.key.encode())
        self._token, self._until, self._made = credential.token, credential.until, time.monotonic()


def _run_plugin(command: PluginCommand) -> str:
    name = command.argv[0]
    try:
        done = subprocess.run(
            command.argv,
            env={**os.environ, **command.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PLUGIN_PATIENCE,
            check=False,
        )
    except FileNotFoundError as error:
        words = f": {command.hint.rstrip('.')}" if command.hint else ""
        raise BadAccess(f"{name}, which makes its credentials, is not installed here{words}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else f"it took longer than {PLUGIN_PATIENCE} s"
        raise BadAccess(f"{name}, which makes its credentials, can't be run: {why}") from error
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"it exited with {done.returncode}"]
        raise BadAccess(f"{name} made no credentials: {last[0]}")
    return done.stdout


@dataclass(frozen=True)
class PluginCredential:
    """What a program made: a token or a client certificate, and until when it is good."""

    token: str = ""
    certificate: str = ""
    key: str = ""
    until: datetime | None = None


def read_credential(text: str) -> PluginCredential:
    """Read the output of a program that makes credentials."""
    try:
        status: Mapping[str, Any] = json.loads(text)["status"]
        names = ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
        token, certificate, key, expires = (str(status.get(name) or "") for name in names)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadAccess("what makes its credentials printed none") from error
    try:
        until = datetime.fromisoformat(expires) if expires else None
    except ValueError as error:
        raise BadAccess("what makes its credentials printed no time as their `expirationTimestamp`") from error
    if until and until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return PluginCredential(token, certificate, key, until)
