"""A real mail server for the tests: it takes what is sent and shows it."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP

from sublet.kernel.settings_tables import MailSettings

PATIENCE = 30.0
SENDER = "gateway@example.org"
CODE = re.compile(r"^\s*(\d{4} \d{4})\s*$", re.M)


@dataclass
class Mailbox:
    """What has come, and where it is sent to."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)  # of each mail, as its envelope said
    refuses: str = ""  # an address that it takes nothing for
    keep: Path | None = None  # a directory to write each mail to, by address and number
    come: threading.Condition = field(default_factory=threading.Condition)

    @property
    def settings(self) -> MailSettings:
        """The settings that send here."""
        return MailSettings(host="127.0.0.1", port=self.port, security="none", sender=SENDER)

    @property
    def toml(self) -> str:
        """The same, for a file."""
        return f'[mail]\nhost = "127.0.0.1"\nport = {self.port}\nsecurity = "none"\nsender = "{SENDER}"\n'

    def to(self, address: str) -> list[EmailMessage]:
        """What has come for an address so far."""
        pairs = zip(self.mails, self.recipients, strict=True)
        return [mail for mail, recipients in pairs if address in recipients]

    def wait_for(self, address: str, number: int = 1) -> EmailMessage:
        """The mail of this number for an address, once it has come."""
        deadline = time.monotonic() + PATIENCE
        with self.come:
            while len(self.to(address)) < number:
                left = deadline - time.monotonic()
                assert left > 0, f"mail {number} for {address} did not come; there are {len(self.mails)}"
                self.come.wait(left)
            return self.to(address)[number - 1]

    async def comes_for(self, address: str, number: int = 1) -> EmailMessage:
        """The same, for tests in which the service runs too."""
        return await asyncio.to_thread(self.wait_for, address, number)

    def code(self, address: str, number: int = 1) -> str:
        """The code to sign in with that such a mail brought."""
        found = CODE.search(text_of(self.wait_for(address, number)))
        assert found
        return found[1]

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802
        """Whether it takes mail for an address."""
        if address == self.refuses:
            return "550 5.1.1 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        """Take a mail."""
        mail = message_from_bytes(envelope.content, policy=default)
        assert isinstance(mail, EmailMessage)
        with self.come:
            self.mails.append(mail)
            self.recipients.append(list(envelope.rcpt_tos))
            for address in envelope.rcpt_tos if self.keep else ():
                part = self.keep / f".{address}-{len(self.mails)}"
                part.write_text(text_of(mail))
                part.rename(self.keep / part.name[1:])
            self.come.notify_all()
        return "250 OK"


def text_of(mail: EmailMessage) -> str:
    """What a mail says."""
    return mail.get_content().replace("\r\n", "\n")


@contextlib.contextmanager
def running_smtp(tls: ssl.SSLContext | None = None, keep: Path | None = None, **options: Any) -> Iterator[Mailbox]:
    """A mail server in a thread and on a port of its own, private from the start with `tls`; options are aiosmtpd's."""
    box, began, end = Mailbox(keep=keep), threading.Event(), threading.Event()

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: SMTP(box, loop=loop, **options), "127.0.0.1", 0, ssl=tls)
        box.port = server.sockets[0].getsockname()[1]
        began.set()
        await asyncio.to_thread(end.wait)
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="smtp")
    thread.start()
    assert began.wait(PATIENCE)
    try:
        yield box
    finally:
        end.set()
        thread.join()
