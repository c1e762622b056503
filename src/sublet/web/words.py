"""Times and amounts for people, in the visitor's time zone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from sublet.access.model.access import NOUNS
from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.offer import Node, Offer, Quote, Reason, Take
from sublet.booking.model.phases import Phase
from sublet.booking.model.shape import Shape
from sublet.booking.model.windows import zone_of
from sublet.kernel.errors import BadAmount
from sublet.kernel.texts import describe_duration

UNITS = (("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
LONGEST_ZONE = 64

TONES: dict[Phase, str] = {
    Phase.OFFERED: "open",
    Phase.ACCEPTED: "open",
    Phase.WAITING: "open",
    Phase.PREPARING: "live",
    Phase.AVAILABLE: "live",
    Phase.RUNNING: "live",
    Phase.RELEASING: "live",
    Phase.COMPLETED: "good",
    Phase.FAILED: "bad",
    Phase.CANCELLED: "idle",
    Phase.REJECTED: "idle",
    Phase.EXPIRED: "idle",
}

KINDS = {
    "command": "command",
    "docker-container": "container image",
    "singularity-container": "Apptainer image",
    "jupyter-notebook": "notebook",
    "docker-compose": "Compose file",
    "bag": "bag of tasks",
    "steps": "steps",
    "interactive": "interactive",
}


@dataclass(frozen=True, slots=True)
class Clock:
    """The current time, and the visitor's time zone."""

    now: datetime
    zone: ZoneInfo

    @classmethod
    def of(cls, name: str, now: datetime) -> Clock:
        """Return a clock in the named time zone, or in UTC if there is no such zone."""
        try:
            return cls(now, zone_of(name if 0 < len(name) <= LONGEST_ZONE else "UTC"))
        except BadAmount:
            return cls(now, ZoneInfo("UTC"))

    @property
    def name(self) -> str:
        """The zone's name: `UTC`, or `Europe/London (UTC+1)`."""
        offset = self.now.astimezone(self.zone).utcoffset() or timedelta(0)
        if self.zone.key in ("UTC", "Etc/UTC"):
            return "UTC"
        sign = "−" if offset < timedelta(0) else "+"
        hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
        return f"{self.zone.key} (UTC{sign}{hours}{f':{minutes:02}' if minutes else ''})"

    def day(self, time: datetime) -> str:
        """Return the day: `today`, `tomorrow`, `yesterday`, `Mon 3 Mar`, `Mon 3 Mar 2028`."""
        local, today = time.astimezone(self.zone).date(), self.now.astimezone(self.zone).date()
        near = {0: "today", 1: "tomorrow", -1: "yesterday"}.get((local - today).days)
        return near or f"{local:%a} {local.day} {local:%b}" + ("" if local.year == today.year else f" {local.year}")

    def time(self, time: datetime) -> str:
        """Return the time of day, `09:00`, with seconds if there are any."""
        local = time.astimezone(self.zone)
        return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"

    def moment(self, time: datetime) -> str:
        """Return the day and time: `tomorrow 09:00`."""
        return f"{self.day(time)} {self.time(time)}"

    def at_moment(self, time: datetime) -> str:
        """Return the day and time for use in a sentence: `tomorrow at 09:00`, `on Mon 3 Mar at 09:00`."""
        day = self.day(time)
        return f"{'on ' if ' ' in day else ''}{day} at {self.time(time)}"

    def span(self, start: datetime, end: datetime) -> str:
        """Return a range, `tomorrow 09:00–12:00`, with the second day if it is another."""
        last = self.time(end) if self.day(start) == self.day(end) else self.moment(end)
        return f"{self.moment(start)}–{last}"

    def away(self, time: datetime) -> str:
        """Return the distance from now to the two largest units: `in 2 h`, `5 min ago`."""
        seconds = round((time - self.now).total_seconds())
        if seconds == 0:
            return "now"
        words = duration_about(timedelta(seconds=abs(seconds)))
        return f"in {words}" if seconds > 0 else f"{words} ago"


def utc(time: datetime) -> str:
    """Return a time in UTC for the record: `2026-03-03 09:00:00 UTC`."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def machine(time: datetime) -> str:
    """Return a time in UTC for programs: `2026-03-03T09:00:00Z`."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def duration_about(length: timedelta) -> str:
    """Return a duration to the two largest units: `2 d 4 h`, `5 min 3 s`."""
    return describe_duration(length, units=2)


def duration_signed(length: timedelta) -> str:
    """Return a duration that may be negative: `5 min`, `−2 h`."""
    return f"−{duration_about(-length)}" if length < timedelta(0) else duration_about(length)


def memory_about(size: int) -> str:
    """Return an amount of memory to a tenth: `15.6 GiB`."""
    for name, unit in UNITS:
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{size} B"


def count_text(number: int, noun: str, many: str = "") -> str:
    """Return a number with its noun: `1 core`, `2 cores`."""
    return f"{number} {noun if number == 1 else many or noun + 's'}"


def has(amounts: Shape | Node | Take) -> str:
    """Return the resources of a node, or those taken of it: `4 cores · 8 GiB · 1 GPU`."""
    gpus = f" · {count_text(amounts.gpus, 'GPU')}" if amounts.gpus else ""
    disk = f" · {memory_about(amounts.disk)} of disk" if amounts.disk else ""
    return f"{count_text(amounts.cores, 'core')} · {memory_about(amounts.memory)}{gpus}{disk}"


def resources(offer: Offer) -> str:
    """Return the resources of an offer: `2 nodes, each 4 cores · 8 GiB`."""
    each = has(offer.shape)
    return f"{len(offer.nodes)} nodes, each {each}" if len(offer.nodes) > 1 else each


def price(quotes: Iterable[Quote]) -> str:
    """Return prices in a line, or `nothing`."""
    return ", ".join(_quote(quote) for quote in quotes if quote.max) or "nothing"


def _quote(quote: Quote) -> str:
    low, high = f"{quote.min:.4g}", f"{quote.max:.4g}"
    amount = high if low == high else f"{low}–{high}"
    return f"{amount} {quote.description.removeprefix('in ') or quote.type.rpartition(':')[2]}"


def kind_text(kind: str) -> str:
    """Return a kind of executable in words."""
    return KINDS.get(kind, kind)


# Alternatives in the words of a page, not of a terminal: by a reason's kind and field, with the page to go to.
NEAREST = {
    ("urn:held", "offers"): ("your other offers given back, by the button above", ""),
    ("urn:not-allowed", "executable.kind"): ("one of the apps here, or yours once it was reviewed", "/web/apps"),
    ("urn:not-allowed", "executable.app"): ("one of the apps here", "/web/apps"),
    ("urn:unknown-app", "executable.app"): ("one of the apps here", "/web/apps"),
}
NEAREST |= {("urn:not-allowed", noun): ("what you have access to, or ask for it", "/web/access") for noun in NOUNS}


def describe_nearest(reason: Reason) -> tuple[str, str]:
    """Return what would be possible instead, and the page for it if there is one."""
    return NEAREST.get((reason.kind, reason.field), (reason.nearest, "")) if reason.nearest else ("", "")


def describe_enough(hint: Reason) -> str:
    """Return the amount that a hint advises: `1 core`, `5 min`, `3GiB`."""
    if hint.field == "cores":
        return count_text(int(hint.nearest), "core")
    return describe_duration(parse_duration(hint.nearest)) if hint.field == "time" else hint.nearest
