"""How a kubeconfig, a token's file and a pod's service account are read, and what is wrong with some."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from sublet.kernel.errors import TokenNeeded
from sublet.platforms.kubernetes import access as access_module
from sublet.platforms.kubernetes import credential_plugin
from sublet.platforms.kubernetes.access import AccessSettings, ClusterAccess, open_access
from sublet.platforms.kubernetes.connection import ClusterConnection
from sublet.platforms.kubernetes.kubeconfig import BadAccess
from sublet.platforms.kubernetes.manifests import PodPlace
from sublet.platforms.tokens import TokenSource


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "crt"), "-days", "1", "-subj", "/CN=x"]
    subprocess.run([*words, *files], check=True, capture_output=True)
    return folder / "crt", folder / "key"


def write(folder: Path, user: Any, cluster: Any = None, **more: Any) -> Path:
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://api.example.org:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "lab", "context": {"cluster": "c", "user": "u", "namespace": "alice"}},
            {"name": "other", "context": {"cluster": "c", "user": "u"}},
        ],
        "current-context": "lab",
        **more,
    }
    file = folder / "config"
    file.write_text(yaml.safe_dump(document))
    return file


def opened(file: Path, **more: str) -> ClusterAccess:
    return open_access(AccessSettings(kubeconfig=str(file), **more), {})


def test_a_kubeconfig_says_where_who_and_in_which_namespace(tmp_path: Path) -> None:
    file = write(tmp_path, {"token": "radium"})
    access = opened(file)
    assert (access.server, access.namespace) == ("https://api.example.org:6443", "alice")
    assert access.headers == {"Authorization": "Bearer radium"}
    assert opened(file, context="other").namespace == "default"
    assert opened(file, namespace="bob").namespace == "bob"
    assert "radium" not in repr(access)


def test_without_a_name_the_environment_says_which_file(tmp_path: Path) -> None:
    file = write(tmp_path, {"token": "x"})
    assert open_access(AccessSettings(), {"KUBECONFIG": f"/nowhere::{file}"}).namespace == "alice"
    with pytest.raises(BadAccess, match=r"^/nowhere, /neither can't be read: No such file"):
        open_access(AccessSettings(), {"KUBECONFIG": "/nowhere:/neither"})


def write_part(file: Path, **parts: Any) -> Path:
    """Write a kubeconfig with some of its parts; a group is name → content."""
    file.parent.mkdir(exist_ok=True)
    groups = {"clusters": "cluster", "users": "user", "contexts": "context"}
    lists = {key: [{"name": name, groups[key]: entry} for name, entry in parts.pop(key, {}).items()] for key in groups}
    file.write_text(yaml.safe_dump({**lists, **parts}))
    return file


def test_several_kubeconfigs_are_merged_and_the_first_wins_for_each_name(tmp_path: Path) -> None:
    contexts = {"lab": {"cluster": "c", "user": "u", "namespace": "first"}}
    first = write_part(tmp_path / "1/config", users={"u": {"tokenFile": "token"}}, contexts=contexts)
    second = write_part(
        tmp_path / "2/config",
        clusters={"c": {"server": "https://second"}},
        users={"u": {"token": "wrong"}, "v": {"exec": {"command": "./plugin"}}},
        contexts={"lab": {"cluster": "c", "user": "v"}, "other": {"cluster": "c", "user": "v"}},
        **{"current-context": "lab"},
    )
    third = write_part(
        tmp_path / "3/config", clusters={"c": {"server": "https://third"}}, **{"current-context": "other"}
    )
    (tmp_path / "4").write_text("")
    (tmp_path / "1/token").write_text("beside the first")
    (tmp_path / "2/plugin").write_text('#!/bin/sh\necho \'{"status": {"token": "beside the second"}}\'\n')
    (tmp_path / "2/plugin").chmod(0o700)
    environment = {"KUBECONFIG": ":".join(map(str, (first, second, third, tmp_path / "4")))}
    current, other = (open_access(AccessSettings(context=name), environment) for name in ("", "other"))
    assert (current.server, current.namespace, current.token()) == ("https://second", "first", "beside the first")
    assert (other.server, other.namespace, other.token()) == ("https://second", "default", "beside the second")
    with pytest.raises(BadAccess, match=r"has no current context; set `context` to one of these: lab$"):
        open_access(AccessSettings(), {"KUBECONFIG": str(first)})
    (tmp_path / "4").write_text("a: [b")
    with pytest.raises(BadAccess, match=f"^{tmp_path}/4 is not YAML"):
        open_access(AccessSettings(), environment)


@pytest.mark.anyio
async def test_a_change_of_any_kubeconfig_or_certificate_makes_a_new_connection(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "IN_POD", tmp_path / "none")
    (tmp_path / "authority").write_bytes(pair[0].read_bytes())
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": "authority"}
    first = write_part(tmp_path / "first", users={"u": {"token": "x"}}, clusters={"c": cluster})
    second = write_part(
        tmp_path / "second", contexts={"lab": {"cluster": "c", "user": "u"}}, **{"current-context": "lab"}
    )
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}:{tmp_path / 'third'}")
    link = ClusterConnection("lab", AccessSettings(), PodPlace("owner", "image", "helper"))
    before, same = await asyncio.gather(link.open(), link.open())
    try:
        assert before is same
        for file in ("second", "third", "authority"):
            with (tmp_path / file).open("a") as changed:
                changed.write("\n")
            after = await link.open()
            assert after is not before, file
            assert await link.open() is after
            before = after
    finally:
        await link.close()


def test_a_token_in_a_file_is_read_at_each_use(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    access = opened(write(tmp_path, {"tokenFile": "token"}))
    assert access.token() == "first"
    (tmp_path / "token").write_text("second\n")
    assert access.token() == "second"


def test_a_token_file_is_used_only_if_nobody_else_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("radium\n")
    access = open_access(AccessSettings(server="https://x", token_file=str(file), namespace="n"), {})
    for mode in (0o640, 0o604):
        file.chmod(mode)
        with pytest.raises(BadAccess, match=f"others can read {file}; `chmod 600` it"):
            access.token()
    file.chmod(0o600)
    assert access.token() == "radium"
    file.write_text("\n")
    with pytest.raises(BadAccess, match="is empty"):
        access.token()


def test_certificates_are_taken_from_files_and_from_the_kubeconfig_itself(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    certificate, key = pair
    files = {"client-certificate": str(certificate), "client-key": str(key)}
    assert opened(write(tmp_path, files, {"certificate-authority": str(certificate)})).headers == {}
    data = {f"{name}-data": base64.b64encode(Path(path).read_bytes()).decode() for name, path in files.items()}
    authority = {"certificate-authority-data": base64.b64encode(certificate.read_bytes()).decode()}
    assert opened(write(tmp_path, data, authority)).tls.get_ca_certs()


def test_a_program_makes_credentials_until_they_expire(tmp_path: Path) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    later = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for expires, runs in ((soon, 2), (later, 1)):
        (tmp_path / "runs").write_text("")
        said = json.dumps({"status": {"token": "made", "expirationTimestamp": expires}})
        script = f'echo "$KUBERNETES_EXEC_INFO" | grep -q ExecCredential && echo run >>"$RUNS" && echo \'{said}\''
        plugin = {"command": "sh", "args": ["-c", script], "env": [{"name": "RUNS", "value": str(tmp_path / "runs")}]}
        access = opened(write(tmp_path, {"exec": plugin}))
        assert [access.token(), access.token()] == ["made", "made"]
        assert (tmp_path / "runs").read_text().count("run") == runs


def make_plugin(folder: Path, status: object, **more: object) -> Path:
    script = f"echo run >>{folder}/runs; cat <<'X'\n{json.dumps({'status': status})}\nX\n"
    return write(folder, {"exec": {"command": "sh", "args": ["-c", script], **more}})


def test_refused_credentials_are_made_again_but_not_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = opened(make_plugin(tmp_path, {"token": "made"}))  # kubectl too runs the program again after a 401
    assert not access.renew(), "nothing has been made"
    assert access.headers == access.headers == {"Authorization": "Bearer made"}
    assert not access.renew(), "they are new, so others would be refused as well"
    monkeypatch.setattr(credential_plugin, "RECENT", 0.0)
    assert access.renew()
    assert access.headers
    assert (tmp_path / "runs").read_text().count("run") == 2


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"token": "x", "expirationTimestamp": "soon"}, "printed no time as their `expirationTimestamp`"),
        ([], "printed none"),
        ({"token": "radium\npolonium"}, "its token can't be sent: it is more than one line"),
        ({"token": "radi\u00fcm"}, "its token can't be sent: it has spaces"),
    ],
)
def test_what_is_wrong_with_what_a_program_made_is_told_without_quoting_it(
    tmp_path: Path, status: object, words: str
) -> None:
    with pytest.raises(BadAccess, match=words) as refused:
        _ = opened(make_plugin(tmp_path, status)).headers
    assert "radi" not in str(refused.value)


def test_a_time_without_a_zone_is_that_of_utc(tmp_path: Path) -> None:
    expires = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S")
    access = opened(make_plugin(tmp_path, {"token": "made", "expirationTimestamp": expires}))
    assert [access.token(), access.token()] == ["made", "made"]


@pytest.mark.parametrize(
    "plugin", [{"args": ["x"]}, "aws", {"command": "x", "env": {"A": "b"}}, {"command": "x", "args": 3}]
)
def test_a_program_that_is_not_well_described_is_told(tmp_path: Path, plugin: object) -> None:
    with pytest.raises(BadAccess, match="its `exec` must have a `command`"):
        opened(write(tmp_path, {"exec": plugin}))


def test_a_program_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    plugin = {"command": "no-such-plugin", "args": [1], "installHint": "Install it\nfrom the shop."}
    with pytest.raises(BadAccess, match=r"^no-such-plugin, .*is not installed here: Install it from the shop$"):
        opened(write(tmp_path, {"exec": plugin})).token()


@pytest.mark.parametrize("content", ["radium\npolonium", "radium polonium", "radi\u00fcm"])
def test_a_token_that_no_header_can_hold_is_not_quoted(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    file.chmod(0o600)
    access = open_access(AccessSettings(server="https://x", token_file=str(file), namespace="n"), {})
    with pytest.raises(BadAccess, match="can't be sent") as refused:
        _ = access.headers
    assert "radi" not in str(refused.value)
    with pytest.raises(TokenNeeded, match="can't be sent") as needed:
        asyncio.run(TokenSource("hub", "https://hub.example.org", str(file), "").read())
    assert "radi" not in str(needed.value)


def test_in_a_pod_its_service_account_is_used(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "IN_POD", tmp_path)
    (tmp_path / "token").write_text("mounted")
    (tmp_path / "namespace").write_text("science\n")
    (tmp_path / "ca.crt").write_bytes(pair[0].read_bytes())
    access = open_access(AccessSettings(), {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})
    assert (access.server, access.namespace, access.token()) == ("https://[fd00::1]:443", "science", "mounted")


BROKEN = [
    ({"token": "x"}, {}, {"current-context": "gone"}, "has no context gone; there are: lab, other"),
    ({"token": "x"}, {"insecure-skip-tls-verify": True}, {}, "certificate-authority instead"),
    ({"auth-provider": {"name": "gcp"}}, {}, {}, "signs in by auth-provider"),
    ({"username": "u", "password": "p"}, {}, {}, "signs in by username"),
    ({"token": "x"}, {"server": "http://plain"}, {}, "http://plain is not an https address"),
    ({"token": "x"}, {"certificate-authority-data": "*"}, {}, "not base64"),
    ({"client-certificate": "gone"}, {}, {}, "gone can't be read: No such file"),
    ({"token": "x"}, {}, {"contexts": 3}, "no kubeconfig that can be used"),
]


@pytest.mark.parametrize(("user", "cluster", "more", "words"), BROKEN, ids=[words for *_, words in BROKEN])
def test_what_is_wrong_with_a_kubeconfig_is_told(
    tmp_path: Path, user: Any, cluster: Any, more: Any, words: str
) -> None:
    with pytest.raises(BadAccess, match=words):
        opened(write(tmp_path, user, cluster, **more))


def test_what_is_no_kubeconfig_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadAccess, match="can't be read: No such file"):
        opened(tmp_path / "none")
    (tmp_path / "odd").write_text("a: [b")
    with pytest.raises(BadAccess, match="is not YAML"):
        opened(tmp_path / "odd")
    with pytest.raises(BadAccess, match="needs a `token_file`"):
        open_access(AccessSettings(server="https://x"), {})
    plugins = {
        "false": "made no credentials: it exited with 1",
        "no-such-plugin": "is not installed here",
        "true": "printed none",
    }
    for program, words in plugins.items():
        with pytest.raises(BadAccess, match=words):
            opened(write(tmp_path, {"exec": {"command": program}})).token()
