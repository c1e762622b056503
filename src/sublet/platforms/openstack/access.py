"""Access to a cloud by clouds.yaml, or by an application credential whose secret is kept in the vault."""

from __future__ import annotations

import os
import ssl
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

PLACES = ("~/.config/openstack/clouds.yaml", "/etc/openstack/clouds.yaml")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
APPLICATION = "v3applicationcredential"
SECRETS = ("password", "application_credential_secret", "token")


class BadCloud(Exception):
    """What is wrong with a clouds.yaml or a credential, in words."""


@dataclass(frozen=True)
class CloudSettings:
    """The settings of a platform that concern access."""

    cloud: str = ""
    clouds_file: str = ""
    auth_url: str = ""
    application_credential: str = ""
    region: str = ""
    authority: str = ""


@dataclass(frozen=True)
class CloudAccess:
    """The address of a cloud's Keystone, and the credentials for it."""

    auth_url: str  # of Keystone, with its version
    identity: Mapping[str, Any] = field(repr=False)  # what is sent to Keystone for a token
    region: str = ""
    interface: str = "public"
    authority: str = ""  # the file with the CA certificate of its services; empty: this machine's

    @property
    def tls(self) -> ssl.SSLContext:
        """The TLS context for its services."""
        try:
            return ssl.create_default_context(cafile=self.authority or None)
        except (OSError, ssl.SSLError) as error:
            raise BadCloud(f"the certificate of its authority can't be read: {error}") from error


def open_cloud(settings: CloudSettings, secret: str = "", environment: Mapping[str, str] = os.environ) -> CloudAccess:
    """Open access by an application credential and its secret, or else by an entry of clouds.yaml."""
    if settings.auth_url:
        identity = _by_application({"application_credential_id": settings.application_credential}, secret)
        return _check(CloudAccess(settings.auth_url, identity, settings.region, authority=settings.authority))
    entry = read_entry(find_file(settings.clouds_file, environment), settings.cloud or environment.get("OS_CLOUD", ""))
    auth = entry.get("auth") or {}
    kind = str(entry.get("auth_type") or ("" if "password" in auth else APPLICATION if _is_application(auth) else ""))
    access = CloudAccess(
        str(auth.get("auth_url") or ""),
        _identify(kind, auth),
        settings.region or str(entry.get("region_name") or ""),
        str(entry.get("interface") or entry.get("endpoint_type") or "public").removesuffix("URL"),
        settings.authority or str(entry.get("cacert") or ""),
    )
    if entry.get("verify") is False or entry.get("insecure"):
        raise BadCloud("its entry in clouds.yaml says verify: false; give it the cloud's cacert instead")
    return _check(access)


def _check(access: CloudAccess) -> CloudAccess:
    place = urlsplit(access.auth_url)
    if place.scheme != "https" and not (place.scheme == "http" and place.hostname in LOOPBACK):
        raise BadCloud(f"{access.auth_url or 'its auth_url'} is not an https address")
    address = access.auth_url.rstrip("/")
    return CloudAccess(
        address if address.endswith("/v3") else f"{address}/v3",
        access.identity,
        access.region,
        access.interface,
        access.authority,
    )


def find_file(named: str, environment: Mapping[str, str]) -> Path:
    """Return the clouds.yaml to use."""
    places = [named] if named else [environment.get("OS_CLIENT_CONFIG_FILE", ""), *PLACES]
    files = [Path(place).expanduser() for place in places if place]
    return next((file for file in files if file.exists()), files[0])


def read_entry(file: Path, name: str) -> dict[str, Any]:
    """Read one cloud of a clouds.yaml, with additions from the secure.yaml beside it."""
    clouds = _read_clouds(file)
    secure = file.with_name("secure.yaml")
    hidden = _read_clouds(secure) if secure.exists() else {}
    if not name and len(clouds) == 1:
        name = next(iter(clouds))
    if name not in clouds:
        known = ", ".join(clouds) or "none"
        raise BadCloud(f"{file} has no cloud {name}; there are: {known}" if name else f"say which `cloud`: {known}")
    entry, more = dict(clouds[name] or {}), dict(hidden.get(name) or {})
    return {**entry, **more, "auth": {**(entry.get("auth") or {}), **(more.get("auth") or {})}}


def _read_clouds(file: Path) -> dict[str, Any]:
    try:
        mode, text = file.stat().st_mode, file.read_text()
        clouds = (yaml.safe_load(text) or {}).get("clouds") or {}
        is_secret = any(word in (entry or {}).get("auth", {}) for entry in clouds.values() for word in SECRETS)
    except OSError as error:
        raise BadCloud(f"{file} can't be read: {error.strerror}") from error
    except (yaml.YAMLError, AttributeError, TypeError) as error:
        raise BadCloud(f"{file} is no clouds.yaml that can be used: {str(error).splitlines()[0]}") from error
    if is_secret and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadCloud(f"others can read the secret in {file}; run: chmod 600 {file}")
    return dict(clouds)


def _is_application(auth: Mapping[str, Any]) -> bool:
    return "application_credential_id" in auth or "application_credential_name" in auth


def _identify(kind: str, auth: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what Keystone is sent, by the kind of authentication."""
    if kind == APPLICATION:
        return _by_application(auth, str(auth.get("application_credential_secret") or ""))
    if kind in ("", "password", "v3password"):
        user = {"password": _need(auth, "password")}
        user |= {"id": auth["user_id"]} if "user_id" in auth else _name_user(auth)
        return {"identity": {"methods": ["password"], "password": {"user": user}}, **_scope(auth)}
    if kind in ("token", "v3token"):
        return {"identity": {"methods": ["token"], "token": {"id": _need(auth, "token")}}, **_scope(auth)}
    raise BadCloud(f"its entry in clouds.yaml has the auth_type {kind}; password, token and {APPLICATION} are known")


def _by_application(auth: Mapping[str, Any], secret: str) -> Mapping[str, Any]:
    if not secret:
        raise BadCloud("there is no secret of its application credential")
    credential: dict[str, Any] = {"secret": secret}
    if auth.get("application_credential_id"):
        credential["id"] = auth["application_credential_id"]
    else:
        credential |= {"name": _need(auth, "application_credential_name"), "user": _name_user(auth)}
    return {"identity": {"methods": ["application_credential"], "application_credential": credential}}


def _name_user(auth: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": _need(auth, "username"), "domain": _domain(auth, "user")}


def _domain(auth: Mapping[str, Any], whose: str) -> dict[str, str]:
    if number := auth.get(f"{whose}_domain_id") or auth.get("domain_id"):
        return {"id": str(number)}
    return {"name": str(auth.get(f"{whose}_domain_name") or auth.get("domain_name") or "Default")}


def _scope(auth: Mapping[str, Any]) -> dict[str, Any]:
    if "project_id" in auth:
        return {"scope": {"project": {"id": auth["project_id"]}}}
    return {"scope": {"project": {"name": _need(auth, "project_name"), "domain": _domain(auth, "project")}}}


def _need(auth: Mapping[str, Any], name: str) -> str:
    if not auth.get(name):
        raise BadCloud(f"its entry in clouds.yaml has no {name}")
    return str(auth[name])
