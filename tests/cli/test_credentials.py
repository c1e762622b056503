"""`sublet credential`, as people see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sublet.data.views.credentials import CredentialList, CredentialView, GlobusVisitView
from tests.canned import NOW, Said
from tests.cli.conftest import Serve, Type
from tests.sshd import make_key

pytestmark = pytest.mark.usefixtures("in_utc")
KEPT = CredentialView(place="s3://bucket", kind="s3", user="AKIA", endpoint="https://s3.example.org", created=NOW)


def test_a_secret_is_read_from_standard_input_and_shown_nowhere(type_in: Type, canned: Serve) -> None:
    asked = canned({"POST /v1/credentials": Said(KEPT, 201)})
    words = ("credential", "add", "s3://bucket", "--access-key", "AKIA", "--endpoint", "https://s3.example.org")
    said = type_in(*words, stdin="a-secret\n")
    assert said.out == "Kept, for addresses that begin with s3://bucket.\n"
    assert json.loads(asked.heard[-1].body)["secret"] == "a-secret"
    assert "a-secret" not in said.out + said.err


@pytest.mark.parametrize("words", [(), ("--user", "me", "--token")])
def test_it_must_be_said_what_it_is(type_in: Type, canned: Serve, words: tuple[str, ...]) -> None:
    canned({})
    said = type_in("credential", "add", "https://example.org", *words)
    assert said.code == 2
    assert "--user NAME, --token, --access-key KEY, or for Globus --sign-in" in said.err


def test_a_sign_in_to_globus_shows_its_address_and_sends_the_code_with_what_belongs_to_it(
    type_in: Type, canned: Serve
) -> None:
    visit = GlobusVisitView(address="https://auth.globus.org/v2/oauth2/authorize?x=1", client_id="3f6c", verifier="own")
    kept = CredentialView(place="globus://", kind="token", user="3f6c", created=NOW)
    answers = {"POST /v1/credentials/globus": Said(visit), "POST /v1/credentials/globus/code": Said(kept, 201)}
    asked = canned(answers)
    said = type_in("credential", "add", "globus://", "--sign-in", "--client-id", "3f6c", stdin="the-code\n")
    assert said.out == "Kept, for addresses that begin with globus://.\n"
    assert visit.address in said.err
    assert "own" not in said.err.replace("shown", ""), "its secret is shown to nobody"
    body = json.loads(asked.heard[-1].body)
    assert body == {"code": "the-code", "client_id": "3f6c", "verifier": "own", "place": "globus://"}
    assert type_in("credential", "add", "s3://x", "--sign-in", "--client-id", "3f6c").code == 2


def test_a_private_key_is_read_from_its_file_with_the_host_key_that_is_right(
    type_in: Type, canned: Serve, tmp_path: Path
) -> None:
    asked = canned({"POST /v1/credentials": Said(KEPT, 201)})
    public = make_key(tmp_path / "key").with_suffix(".pub").read_text()
    (tmp_path / "known_hosts").write_text(f"other {public}[data.org]:2222 {public}")
    words = ("credential", "add", "sftp://data.org:2222/team", "--user", "me", "--key", str(tmp_path / "key"))
    fingerprint, line = "SHA256:" + "a" * 43, " ".join(public.split()[:2])
    for given, kept in ((fingerprint, fingerprint), (str(tmp_path / "known_hosts"), line), (public, line)):
        assert type_in(*words, "--host-key", given).code == 0
        body = json.loads(asked.heard[-1].body)
        assert (body["kind"], body["user"], body["endpoint"]) == ("key", "me", kept)
        assert body["secret"] == (tmp_path / "key").read_text()
    assert "no key of data.org" in type_in(*words, "--host-key", "nonsense").err
    assert "can't be read" in type_in(*words[:-1], "/no/such").err
    assert type_in("credential", "add", "https://x.org", "--token", "--key", "x").code == 2


def test_credentials_are_listed_and_forgotten(type_in: Type, canned: Serve) -> None:
    canned({"GET /v1/credentials": Said(CredentialList(items=(KEPT,))), "DELETE /v1/credentials": Said(None, 204)})
    assert "s3://bucket" in type_in("credential", "list").out
    assert type_in("credential", "remove", "s3://bucket").out == "s3://bucket is forgotten.\n"


def test_temporary_keys_are_stored_with_the_session_token_on_the_next_line(type_in: Type, canned: Serve) -> None:
    asked = canned({"POST /v1/credentials": Said(KEPT, 201)})
    words = ("credential", "add", "s3://bucket", "--access-key", "ASIA", "--session-token")
    said = type_in(*words, stdin="a-secret\r\na-token\r\n")
    body = json.loads(asked.heard[-1].body)
    assert (body["secret"], body["session_token"]) == ("a-secret", "a-token")
    assert "a-token" not in said.out + said.err
    assert "and the session token next" in type_in(*words, stdin="a-secret\n").err
    assert (
        "belongs to temporary S3 keys"
        in type_in("credential", "add", "https://x.org", "--token", "--session-token").err
    )
