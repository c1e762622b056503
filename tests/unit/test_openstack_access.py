"""clouds.yaml and application credentials are read as by OpenStack's own tools, and refusals keep their words."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sublet.platforms.openstack.access import BadCloud, CloudSettings, open_cloud
from sublet.platforms.openstack.api import read_words

AUTH = {"auth_url": "https://cloud.example:5000", "username": "alice", "password": "hush", "project_name": "sky"}


def write(folder: Path, entry: dict[str, object], name: str = "clouds.yaml", mode: int = 0o600) -> CloudSettings:
    file = folder / name
    file.write_text(yaml.safe_dump({"clouds": {"here": entry}}))
    file.chmod(mode)
    return CloudSettings(clouds_file=str(folder / "clouds.yaml"))


def test_a_password_is_for_a_project_and_the_version_is_added(tmp_path: Path) -> None:
    access = open_cloud(write(tmp_path, {"auth": AUTH, "region_name": "north"}), environment={})
    assert (access.auth_url, access.region, access.interface) == ("https://cloud.example:5000/v3", "north", "public")
    user = {"password": "hush", "name": "alice", "domain": {"name": "Default"}}
    assert access.identity["identity"] == {"methods": ["password"], "password": {"user": user}}
    assert access.identity["scope"] == {"project": {"name": "sky", "domain": {"name": "Default"}}}
    assert "hush" not in repr(access)


def test_secrets_may_stand_in_secure_yaml_beside_it(tmp_path: Path) -> None:
    settings = write(tmp_path, {"auth": {**AUTH, "password": ""}}, mode=0o600)
    write(tmp_path, {"auth": {"password": "hush"}}, "secure.yaml")
    assert open_cloud(settings, environment={}).identity["identity"]["password"]["user"]["password"] == "hush"


def test_an_application_credential_needs_no_project(tmp_path: Path) -> None:
    auth = {"auth_url": AUTH["auth_url"], "application_credential_id": "4f", "application_credential_secret": "hush"}
    settings = write(tmp_path, {"auth_type": "v3applicationcredential", "auth": auth})
    identity = {"methods": ["application_credential"], "application_credential": {"secret": "hush", "id": "4f"}}
    assert open_cloud(settings, environment={}).identity == {"identity": identity}
    sealed = CloudSettings(auth_url=AUTH["auth_url"], application_credential="4f")
    assert open_cloud(sealed, "hush").identity == {"identity": identity}
    with pytest.raises(BadCloud, match="no secret of its application credential"):
        open_cloud(sealed, "")


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadCloud, match=r"others can read the secret in .*chmod 600"):
        open_cloud(write(tmp_path, {"auth": AUTH}, mode=0o644), environment={})
    with pytest.raises(BadCloud, match="is not an https address"):
        open_cloud(write(tmp_path, {"auth": {**AUTH, "auth_url": "http://cloud.example"}}), environment={})
    with pytest.raises(BadCloud, match="give it the cloud's cacert instead"):
        open_cloud(write(tmp_path, {"auth": AUTH, "verify": False}), environment={})
    with pytest.raises(BadCloud, match="has no cloud there; there are: here"):
        open_cloud(write(tmp_path, {"auth": AUTH}), environment={"OS_CLOUD": "there"})
    with pytest.raises(BadCloud, match="auth_type v3oidcpassword"):
        open_cloud(write(tmp_path, {"auth": AUTH, "auth_type": "v3oidcpassword"}), environment={})
    with pytest.raises(BadCloud, match="has no project_name"):
        open_cloud(write(tmp_path, {"auth": {**AUTH, "project_name": ""}}), environment={})
    with pytest.raises(BadCloud, match="can't be read"):
        open_cloud(CloudSettings(clouds_file=str(tmp_path / "none.yaml")), environment={})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"forbidden": {"code": 403, "message": "Quota exceeded for cores."}}', "Quota exceeded for cores"),
        (
            b'{"error": {"code": 401, "message": "The request you have made", "title": "x"}}',
            "The request you have made",
        ),
        (b'{"NeutronError": {"type": "NetworkNotFound", "message": "No network"}}', "No network"),
        (
            b'{"errors": [{"status": 400, "title": "Bad", "detail": "there is no such thing"}]}',
            "there is no such thing",
        ),
        (
            b"<html><head><title>403 Forbidden</title></head><body>You may not do that.</body></html>",
            "You may not do that",
        ),
        (b"", ""),
    ],
)
def test_each_service_wraps_its_words_otherwise(content: bytes, words: str) -> None:
    assert read_words(content) == words
