"""The clock of the person who sits here, with the changes of its time zone."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

LOCALTIME = "/etc/localtime"


def local_now() -> datetime:
    """The present, in the time zone of this machine or of TZ."""
    return datetime.now(local_zone())


def local_zone() -> tzinfo:
    """The time zone by its name, where it has one; else as the C library tells it."""
    for name in _names():
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            continue
    return SystemZone()


def _names() -> list[str]:
    """What TZ says, else where the machine's own clock points to."""
    if "TZ" in os.environ:
        return [os.environ["TZ"].removeprefix(":") or "UTC"]
    try:
        _, separator, name = os.path.realpath(LOCALTIME).partition("zoneinfo/")
    except OSError:
        return []
    return [name] if separator else []


class SystemZone(tzinfo):
    """A time zone that has no name, by the C library."""

    def utcoffset(self, when: datetime | None) -> timedelta:
        """How far its clock is ahead of UTC then."""
        if when is None:
            return timedelta(seconds=-time.timezone)
        return when.replace(tzinfo=None).astimezone().utcoffset() or timedelta(0)

    def dst(self, when: datetime | None) -> timedelta:
        """How much of that is summer time."""
        return self.utcoffset(when) - timedelta(seconds=-time.timezone)

    def tzname(self, when: datetime | None) -> str:
        """What people call it then."""
        return when.replace(tzinfo=None).astimezone().tzname() or "" if when else time.tzname[0]

    def fromutc(self, when: datetime) -> datetime:
        """An instant, by this clock."""
        local = when.replace(tzinfo=UTC).astimezone()
        return local.replace(tzinfo=self)
