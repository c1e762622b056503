"""Stored secrets are sealed by a key that lies elsewhere, each for its own purpose."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sublet.kernel.errors import BadMasterKey, NoMasterKey, NotSealedHere
from sublet.kernel.master_key import CREDENTIAL, make
from sublet.kernel.vault import Vault

SECRET = "a secret of several words"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A service's home."""
    made = tmp_path / "home"
    made.mkdir()
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A master key beside it."""
    path = tmp_path / "master"
    make(str(path))
    return path


def test_what_is_sealed_can_be_opened_for_the_same_purpose_alone(home: Path, file: Path) -> None:
    vault = Vault(home, str(file))
    sealed = vault.seal("account:keeling", SECRET)
    assert "secret" not in sealed
    assert vault.open("account:keeling", sealed) == SECRET
    assert vault.seal("account:keeling", SECRET) != sealed
    with pytest.raises(NotSealedHere, match="sealed for something else"):
        vault.open("account:expanse", sealed)


def test_a_changed_text_is_not_opened(home: Path, file: Path) -> None:
    vault = Vault(home, str(file))
    sealed = vault.seal("totp:ann", SECRET)
    swapped = "A" if sealed[-6] != "A" else "B"
    for wrong in (sealed[:-6] + swapped + sealed[-5:], sealed[:20], SECRET, "", "sealed1.zz."):
        with pytest.raises(NotSealedHere):
            vault.open("totp:ann", wrong)


def test_a_new_key_seals_and_the_old_one_still_opens_until_it_is_taken_out(home: Path, file: Path) -> None:
    vault = Vault(home, str(file))
    before = vault.seal("account:keeling", SECRET)
    new = make(str(file), more=True)
    assert vault.open("account:keeling", before) == SECRET
    after = vault.reseal("account:keeling", before)
    assert after != before
    assert f".{new.id}." in after
    assert vault.reseal("account:keeling", after) == after
    file.write_text(file.read_text().splitlines()[0])
    assert vault.open("account:keeling", after) == SECRET
    with pytest.raises(NotSealedHere, match="is not in the file"):
        vault.open("account:keeling", before)


def test_the_key_of_another_service_opens_nothing(home: Path, file: Path, tmp_path: Path) -> None:
    sealed = Vault(home, str(file)).seal("account:keeling", SECRET)
    make(str(tmp_path / "other"))
    with pytest.raises(NotSealedHere):
        Vault(home, str(tmp_path / "other")).open("account:keeling", sealed)


def test_a_master_key_below_the_home_is_refused_however_it_is_named(home: Path, tmp_path: Path) -> None:
    inside = home / "keys" / "master"
    inside.parent.mkdir()
    make(str(inside))
    link = tmp_path / "link"
    link.symlink_to(inside)
    other = tmp_path / "also-home"
    other.symlink_to(home)
    for file in (inside, link, other / "keys" / "master", tmp_path / "x" / ".." / "home" / "keys" / "master"):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(BadMasterKey, match="lies in SUBLET_HOME"):
            Vault(home, str(file)).seal("account:keeling", SECRET)


def test_a_master_key_that_others_can_read_is_refused(home: Path, file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    with pytest.raises(BadMasterKey, match="others than its owner") as refused:
        Vault(home, str(file)).seal("account:keeling", SECRET)
    assert refused.value.advice == f"chmod 600 {file}"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_master_key_of_someone_else_is_refused(home: Path, file: Path) -> None:
    os.chown(file, 12345, -1)
    with pytest.raises(BadMasterKey, match="belongs to someone else"):
        Vault(home, str(file)).seal("account:keeling", SECRET)


@pytest.mark.parametrize("content", ["", "\n", "password\n", "sublet-key 12345678 short\n", "\xff"])
def test_a_file_without_a_key_is_refused(home: Path, file: Path, content: str) -> None:
    file.write_text(content, "latin-1")
    with pytest.raises(BadMasterKey):
        Vault(home, str(file)).seal("account:keeling", SECRET)


def test_making_a_key_never_replaces_one(file: Path) -> None:
    before = file.read_text()
    with pytest.raises(BadMasterKey, match="exists already"):
        make(str(file))
    assert file.read_text() == before
    assert [entry.name for entry in file.parent.iterdir() if entry.name.startswith("master")] == ["master"]


def test_systemd_brings_the_key_as_a_credential(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tmp_path / "credentials"
    given.mkdir()
    with pytest.raises(NoMasterKey):
        Vault(home).check("account:keeling")
    make(str(given / CREDENTIAL))
    (given / CREDENTIAL).chmod(0o440)  # as where an access list names the service's user
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(given))
    vault = Vault(home)
    assert vault.open("account:keeling", vault.seal("account:keeling", SECRET)) == SECRET


def test_without_a_master_key_a_gateway_stores_no_secret(home: Path) -> None:
    with pytest.raises(NoMasterKey) as refused:
        Vault(home).seal("totp:ann", SECRET)
    assert "sublet account key" in refused.value.advice


def test_a_personal_service_seals_small_secrets_by_its_own_key_but_never_an_account(home: Path, file: Path) -> None:
    vault = Vault(home, own=lambda: b"k" * 32)
    sealed = vault.seal("totp:ann", SECRET)
    assert vault.open("totp:ann", sealed) == SECRET
    with pytest.raises(NoMasterKey):
        vault.seal("account:keeling", SECRET)
    later = Vault(home, str(file), own=lambda: b"k" * 32)
    assert later.open("totp:ann", sealed) == SECRET
    assert ".home." not in later.reseal("totp:ann", sealed)
