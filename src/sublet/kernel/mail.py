"""Mail: one text to one address, by the operator's mail server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid

import structlog

from sublet.kernel.errors import MailNotSent, SubletError
from sublet.kernel.settings_tables import MailSettings
from sublet.people.model.people import check_address

log = structlog.get_logger()
PATIENCE = 30  # seconds for each step of the conversation
LONGEST_SUBJECT = 200


@dataclass(slots=True)
class Mail:
    """A client of the mail server in the settings."""

    settings: MailSettings

    @property
    def possible(self) -> bool:
        """Whether a mail server is configured."""
        return bool(self.settings.host)

    async def send(self, to: str, subject: str, text: str) -> None:
        """Send a mail; raise MailNotSent if the mail server doesn't accept it."""
        message = self.compose(to, subject, text)
        if not self.possible:
            raise MailNotSent(address=message["To"], why="no mail server is set.")
        import aiosmtplib  # a personal service never needs it

        try:
            await aiosmtplib.send(
                message,
                hostname=self.settings.host,
                port=self.settings.usual_port,
                use_tls=self.settings.security == "tls",
                start_tls=self.settings.security == "starttls",
                username=self.settings.user or None,
                password=self._password(),
                timeout=PATIENCE,
            )
        except (aiosmtplib.SMTPException, OSError, UnicodeDecodeError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            log.warning("mail.failed", address=message["To"], why=why)
            raise MailNotSent(address=message["To"], why=why) from error
        log.info("mail.sent", address=message["To"])

    async def send_each(self, people: Sequence[str], subject: str, text: str) -> bool:
        """Send the same mail to each address; return whether at least one was sent."""
        if not self.possible:
            return False
        sent = await asyncio.gather(*(self.send(to, subject, text) for to in people), return_exceptions=True)
        for failed in sent:
            if isinstance(failed, BaseException) and not isinstance(failed, SubletError):
                log.error("mail.broken", why=type(failed).__name__)
        return any(failure is None for failure in sent)

    def compose(self, to: str, subject: str, text: str) -> EmailMessage:
        """Compose the mail; neither the address nor the subject can inject header lines."""
        sender = check_address(self.settings.sender) if self.settings.sender else f"sublet@{_fqdn()}"
        message = EmailMessage(policy=SMTP)
        message["From"] = sender
        message["To"] = check_address(to)
        message["Subject"] = " ".join("".join(c if c.isprintable() else " " for c in subject).split())[:LONGEST_SUBJECT]
        message["Date"] = format_datetime(datetime.now(UTC))
        message["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text.encode(errors="replace").decode())
        return message

    def _password(self) -> str | None:
        file = self.settings.password_file
        if not file or not self.settings.user:
            return None
        if file.stat().st_mode & 0o077:
            raise PermissionError(f"others can read {file}, which has the password: chmod 600 {file}")
        return file.read_text().strip()


def _fqdn() -> str:
    name = socket.getfqdn()
    return name if "." in name else "localhost.localdomain"
