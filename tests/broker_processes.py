"""Services in processes of their own, one above the other: to be killed, and started again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sublet.booking.calls import brokers as calls
from sublet.booking.views.brokers import BrokerAddition, BrokerView
from sublet.client import Client
from sublet.people.calls import people
from tests.ports import free_port
from tests.serving import Serving


@dataclass
class BrokerProcess:
    """One service, with the platforms of its settings."""

    serving: Serving
    client: Client
    url: str
    token: str

    @classmethod
    def start(cls, home: Path, settings: str) -> BrokerProcess:
        """Start one that others can reach, on a port that it keeps."""
        home.mkdir(parents=True)
        port = free_port()
        (home / "sublet.toml").write_text(f"port = {port}\n{settings}")
        serving = Serving(home, environment={"SUBLET_ANSWER_WITHIN": "8s"})
        client = serving.start()
        return cls(serving, client, f"http://127.0.0.1:{port}", client.do(people.new_token()).token)

    def restart(self, **more: str) -> Client:
        """Start it again after it has died, or ask it to end first."""
        self.serving.stop()
        self.client = self.serving.start(**more)
        return self.client

    def add(self, name: str, other: BrokerProcess) -> BrokerView:
        """Pass requests on to another one."""
        return self.client.do(calls.add(BrokerAddition(name=name, url=other.url, token=other.token)))

    def count_offers(self) -> int:
        """How many offers can still be accepted here."""
        return sum(len(list(offers)) for offers in self.client.open_offers())
