"""The synchronous connection to a service, which starts the personal service if it isn't running."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from sublet.client.address import Address
from sublet.client.call import Call
from sublet.client.http import Reply, send
from sublet.client.problems import raise_for
from sublet.kernel.errors import ClientClosed, ServiceUnreachable
from sublet.kernel.version import VERSION

T = TypeVar("T")
UNAUTHORIZED = 401
ELSEWHERE = "Is the address right, and does a service run there? `sublet doctor` shows where it is looked for."
STILL = "The request may still have been carried out: check before you send it again."


def silent(_: str) -> None:
    """Ignore progress notes."""


class Link:
    """Executes calls, each on its own connection."""

    def __init__(self, address: Address, note: Callable[[str], None] = silent) -> None:
        """Use the address; `note` receives progress messages about what is being waited for."""
        self.address = address
        self._note = note
        self._closed = False

    def close(self) -> None:
        """Refuse further calls; there are no open connections between calls."""
        self._closed = True

    def do(self, call: Call[T]) -> T:
        """Send a call and return its parsed answer."""
        reply = self._send(call, call.patience)
        try:
            answer = reply.whole()
        except OSError as error:
            raise unreachable(self.address, error) from error
        return call.read(answer)

    def stream(self, call: Call[T]) -> Iterator[bytes]:
        """Send a call and yield the body of its answer as it arrives, without a time limit."""
        reply = self._send(call, None)
        try:
            if reply.status >= 400:
                raise_for(reply.status, reply.whole().body)
            yield from reply.pieces()
        except OSError as error:
            raise unreachable(self.address, error) from error
        finally:
            reply.close()

    def _send(self, call: Call[T], timeout: float | None) -> Reply:
        if self._closed:
            raise ClientClosed
        if self.address.token_ends:
            return self._send_renewed(call, timeout)
        try:
            return self._heed_version(send(self.address, call, timeout))
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as error:
            if self.address.home is None:
                raise unreachable(self.address, error) from error
        except OSError as error:
            raise unreachable(self.address, error) from error
        return self._start_and_send(call, timeout)

    def _send_renewed(self, call: Call[T], timeout: float | None) -> Reply:
        """Send the call with a token that is renewed when due, and once more if the service rejects it."""
        from sublet.client.renewing import is_due, renew  # only for those who signed in by an issuer

        was_due = is_due(self.address)
        self.address = renew(self.address) if was_due else self.address
        try:
            reply = send(self.address, call, timeout)
            if reply.status == UNAUTHORIZED and not was_due:
                reply.close()
                self.address = renew(self.address)
                reply = send(self.address, call, timeout)
            return reply
        except OSError as error:
            raise unreachable(self.address, error) from error

    def _heed_version(self, reply: Reply) -> Reply:
        """Note once if the person's own service has another version; other services aren't theirs to restart."""
        if self.address.home is not None and reply.headers.get("sublet-version") != VERSION:
            from sublet.client.versions import tell_difference  # hardly ever needed

            tell_difference(self.address.home, reply.headers, self._note)
        return reply

    def _start_and_send(self, call: Call[T], timeout: float | None) -> Reply:
        from sublet.client.personal import start  # only needed the first time

        start(self.address, self._note)
        try:
            return send(self.address, call, timeout)
        except OSError as error:
            raise unreachable(self.address, error) from error


def unreachable(address: Address, error: OSError) -> ServiceUnreachable:
    """Return the error for a failed connection, with the reason in words."""
    if isinstance(error, TimeoutError):
        return ServiceUnreachable(f"The service at {address.text} took too long to answer.", hint=STILL)
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return ServiceUnreachable(f"The connection to the service at {address.text} was lost.", hint=STILL)
    why = error.strerror or str(error)
    return ServiceUnreachable(address=address.text, why=why, hint="" if address.local else ELSEWHERE)
