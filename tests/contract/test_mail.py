"""Mail is sent to one address, says what it was told to, and can't be made to say more."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.errors import BadAddress, MailNotSent
from sublet.service.mail import Mail
from sublet.settings import MailSettings
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
    private = mailbox.settings.model_copy(update={"security": "starttls", "user": "us", "password_file": password})
    with pytest.raises(MailNotSent):
        await Mail(private).send("anna@example.org", "Code", "1234 5678")
    assert len(mailbox.mails) == before
