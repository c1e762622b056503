"""The local clock, with the daylight saving changes of its time zone."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

LOCALTIME = "/etc/localtime"


def local_now() -> datetime:
    """Return the current time in the time zone of TZ or of this machine."""
    return datetime.now(local_zone())


def local_zone() -> tzinfo:
    """Return the local time zone by its name if it has one, or else from the C library."""
    for name in _names():
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            continue
    return SystemZone()


def _names() -> list[str]:
    """Return the name of the time zone from TZ, or from the target of /etc/localtime."""
    if "TZ" in os.environ:
        return [os.environ["TZ"].removeprefix(":") or "UTC"]
    try:
        _, separator, name = os.path.realpath(LOCALTIME).partition("zoneinfo/")
    except OSError:
        return []
    return [name] if separator else []


class SystemZone(tzinfo):
    """A time zone without a name, from the C library."""

    def utcoffset(self, when: datetime | None) -> timedelta:
        """Return the offset from UTC at this time."""
        if when is None:
            return timedelta(seconds=-time.timezone)
        return when.replace(tzinfo=None).astimezone().utcoffset() or timedelta(0)

    def dst(self, when: datetime | None) -> timedelta:
        """Return the daylight saving part of the offset."""
        return self.utcoffset(when) - timedelta(seconds=-time.timezone)

    def tzname(self, when: datetime | None) -> str:
        """Return the zone's abbreviation at this time."""
        return when.replace(tzinfo=None).astimezone().tzname() or "" if when else time.tzname[0]

    def fromutc(self, when: datetime) -> datetime:
        """Convert an instant from UTC to this zone."""
        local = when.replace(tzinfo=UTC).astimezone()
        return local.replace(tzinfo=self)
