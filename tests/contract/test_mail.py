"""Mail is sent to one address, says what it was told to, and can't be made to say more."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sublet.kernel.errors import BadAddress, MailNotSent
from sublet.kernel.mail import Mail
from sublet.kernel.settings_tables import MailSettings
from tests.smtp import SENDER, Mailbox, running_smtp, text_of

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    """A real mail server."""
    with running_smtp() as box:
        yield box


async def test_a_mail_arrives_with_its_head_and_its_text(mailbox: Mailbox) -> None:
    await Mail(mailbox.settings).send("Anna@Bücher.example", "Über Größe", "Zeile 1\n.\nZeile 3 ✓\n")
    mail = mailbox.wait_for("anna@xn--bcher-kva.example")
    assert mail["To"] == "anna@xn--bcher-kva.example"
    assert mail["From"] == SENDER
    assert mail["Subject"] == "Über Größe"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Message-ID"].endswith("@example.org>")
    assert text_of(mail) == "Zeile 1\n.\nZeile 3 ✓\n"


async def test_a_subject_can_not_add_a_line_to_the_head(mailbox: Mailbox) -> None:
    await Mail(mailbox.settings).send("ben@example.org", "News\r\nBcc: eve@example.net\n\nBuy", "Hello.")
    mail = mailbox.wait_for("ben@example.org")
    assert mail["Subject"] == "News Bcc: eve@example.net Buy"
    assert mail["Bcc"] is None
    assert mailbox.to("eve@example.net") == []


@pytest.mark.parametrize("address", ["a@example.org\r\nBcc: eve@example.net", "a@example.org, eve@example.net", "a"])
async def test_an_address_can_not_add_a_line_or_another_address(mailbox: Mailbox, address: str) -> None:
    before = len(mailbox.mails)
    with pytest.raises(BadAddress):
        await Mail(mailbox.settings).send(address, "News", "Hello.")
    assert len(mailbox.mails) == before


async def test_what_can_not_be_sent_is_told_without_its_text(
    mailbox: Mailbox, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    mailbox.refuses = "gone@example.org"
    with pytest.raises(MailNotSent, match="no such mailbox"):
        await Mail(mailbox.settings).send("gone@example.org", "Code", "1234 5678")
    nobody = MailSettings(host="127.0.0.1", port=1, security="none")
    with pytest.raises(MailNotSent):
        await Mail(nobody).send("anna@example.org", "Code", "1234 5678")
    with pytest.raises(MailNotSent, match="no mail server is set"):
        await Mail(MailSettings()).send("anna@example.org", "Code", "1234 5678")
    assert "1234 5678" not in caplog.text + "".join(capsys.readouterr())


async def test_a_server_that_hides_nothing_is_not_spoken_to_unless_that_is_set(
    mailbox: Mailbox, tmp_path: Path
) -> None:
    before = len(mailbox.mails)
    password = tmp_path / "password"
    password.write_text("hush\n")
    password.chmod(0o600)
    private = mailbox.settings.model_copy(update={"security": "starttls", "user": "us", "password_file": password})
    with pytest.raises(MailNotSent):
        await Mail(private).send("anna@example.org", "Code", "1234 5678")
    assert len(mailbox.mails) == before


def certified(directory: Path) -> ssl.SSLContext:
    """A mail server's side of TLS, with a certificate that nobody has vouched for, in `ca.pem`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = made.add_extension(names, critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = made.sign(key, hashes.SHA256())
    (directory / "ca.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (directory / "key.pem").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "ca.pem", directory / "key.pem")
    return context


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_mail_goes_by_tls_with_a_password_to_a_server_that_is_vouched_for(
    security: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = certified(tmp_path)
    shown: list[bytes] = []

    def signs_in(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        shown.append(data.password)
        return AuthResult(success=(data.login, data.password) == (b"us", b"hush"), handled=False)

    options: dict[str, Any] = {"authenticator": signs_in, "auth_require_tls": security != "tls"}
    options |= {"tls_context": tls, "require_starttls": True} if security == "starttls" else {"tls": tls}
    password = tmp_path / "password"
    password.write_text("hush\n")
    with running_smtp(**options) as box:
        signed = {"security": security, "user": "us", "password_file": password}
        mail = Mail(box.settings.model_copy(update=signed))
        with pytest.raises(MailNotSent, match="others can read"):
            await mail.send("anna@example.org", "Code", "1234 5678")
        password.chmod(0o600)
        with pytest.raises(MailNotSent, match=r"(?i)certificate"):
            await mail.send("anna@example.org", "Code", "1234 5678")
        assert shown == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        await mail.send("anna@example.org", "Code", "1234 5678")
        assert (len(box.mails), shown) == (1, [b"hush"])
        password.write_text("wrong\n")
        with pytest.raises(MailNotSent) as caught:
            await mail.send("anna@example.org", "Code", "1234 5678")
        assert "wrong" not in caught.value.message
