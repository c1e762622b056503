"""Looks at /health all the time, from the side."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from sublet.booking.calls.health import health
from sublet.kernel.errors import SubletError
from tests.chaos.evidence import Health
from tests.chaos.services import BrokenService

EVERY = 0.25
PATIENCE = 2.0  # seconds


class HealthSampler(threading.Thread):
    """Of one service, until it is stopped."""

    def __init__(self, service: BrokenService) -> None:
        """Not looking yet."""
        super().__init__(name=f"health of {service.number}", daemon=True)
        self._service, self._over = service, threading.Event()
        self.looks: list[Health] = []

    def run(self) -> None:
        """Look again and again."""
        while not self._over.wait(EVERY):
            self.looks.append(self._look())

    def stop(self) -> None:
        """End it."""
        self._over.set()
        self.join()

    def _look(self) -> Health:
        asked = time.time()
        try:
            view = self._service.link.do(replace(health(), patience=PATIENCE))
            status, problem = view.status, view.problem
        except SubletError as error:
            status, problem = "away", error.message
        return Health(asked, time.time(), status, self._service.number, problem)
