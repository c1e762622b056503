"""A private key is read as ssh-keygen writes it, whatever its kind; what is refused is not repeated."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sublet.kernel.errors import BadKey
from sublet.kernel.ssh_keys import read_key


def made(tmp_path: Path, *words: str, passphrase: str = "") -> tuple[str, str]:
    file = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", *words, "-N", passphrase, "-f", file], check=True)
    return file.read_text(), " ".join((tmp_path / "key.pub").read_text().split()[:2])


@pytest.mark.parametrize(
    "words", [("-t", "ed25519"), ("-t", "ecdsa"), ("-t", "rsa", "-b", "2048"), ("-t", "rsa", "-b", "2048", "-m", "PEM")]
)
def test_keys_of_each_kind_are_read_with_their_public_halves(tmp_path: Path, words: tuple[str, ...]) -> None:
    text, public = made(tmp_path, *words)
    whole, found = read_key(text)
    assert found == public
    assert read_key(whole)[1] == public
    assert read_key(text, "none is needed")[1] == public


@pytest.mark.parametrize("form", [(), ("-m", "PEM")])
def test_a_passphrase_is_taken_off_once(tmp_path: Path, form: tuple[str, ...]) -> None:
    text, public = made(tmp_path, "-t", "ecdsa", *form, passphrase="open sesame")
    with pytest.raises(BadKey, match="it has a passphrase, which was not given"):
        read_key(text)
    with pytest.raises(BadKey, match="its passphrase is another"):
        read_key(text, "open barley")
    whole, found = read_key(text, "open sesame")
    assert found == public
    assert read_key(whole)[1] == public


def test_what_is_no_good_key_is_refused_and_not_repeated(tmp_path: Path) -> None:
    short, _ = made(tmp_path, "-t", "rsa", "-b", "1024")
    secret = short.splitlines()[3]
    for text, why in (
        (short, "too short"),
        ("", "no private key"),
        (short.replace(secret, secret[::-1]), "no private key"),
        ((tmp_path / "key.pub").read_text(), "no private key"),
    ):
        with pytest.raises(BadKey, match=why) as refused:
            read_key(text)
        assert secret not in f"{refused.value}{refused.value.__cause__!r}"
