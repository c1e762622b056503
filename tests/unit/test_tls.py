"""The machine's certificate authorities are read once for many calls, as httpx2 reads them."""

from __future__ import annotations

import ssl

import httpx2
import pytest

from sublet.kernel import tls
from sublet.kernel.tls import trust_machine


def test_many_calls_share_what_was_read_once() -> None:
    assert trust_machine() is trust_machine()


def test_certificates_and_names_of_servers_are_checked() -> None:
    trusted = trust_machine(environment=False)
    assert trusted.check_hostname
    assert trusted.verify_mode is ssl.CERT_REQUIRED
    assert trusted.get_ca_certs() == httpx2.create_ssl_context(trust_env=False).get_ca_certs()


def test_a_change_of_the_authorities_counts_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    before = trust_machine()
    monkeypatch.setattr(tls, "READ_ANEW", 1e-9)
    assert trust_machine() is not before
