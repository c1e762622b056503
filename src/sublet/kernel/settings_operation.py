"""Settings for running a service for many people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from sublet.booking.model.amounts import parse_duration, parse_memory
from sublet.kernel.errors import SubletError
from sublet.kernel.rate_limits import RateLimit, parse_rate_limit
from sublet.kernel.settings_tables import Duration


def _rate_limit(value: object) -> object:
    if isinstance(value, RateLimit):
        return value
    try:
        return parse_rate_limit(value if isinstance(value, str) else repr(value))
    except SubletError as error:
        raise ValueError(error.sentences) from error


Rate = Annotated[RateLimit, BeforeValidator(_rate_limit), PlainSerializer(str)]
HOUR = timedelta(hours=1)


def _size(value: object) -> object:
    try:
        return parse_memory(value) if isinstance(value, str) and not value.isdigit() else value
    except SubletError as error:
        raise ValueError(error.sentences) from error


Size = Annotated[int, BeforeValidator(_size)]


class LogSettings(BaseModel):
    """Where the service's log goes, and when it is rotated. On SIGHUP the file is reopened, as logrotate requires."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: Path | None = Field(
        default=None,
        description="The file; unset: standard error, and `logs/service.log` in SUBLET_HOME if a command started "
        "the service.",
    )
    largest: Size = Field(
        default=10 << 20,
        ge=0,
        description="The bytes, as in `10MiB`, after which it becomes `NAME.1`; 0: never, as where logrotate does it.",
    )
    keep: int = Field(default=5, ge=0, le=1000, description="How many of `NAME.1`, `NAME.2`, … are kept.")


class ConnectionSettings(BaseModel):
    """How many TCP connections are served at a time. The owner's Unix socket has no such limit.

    While all are taken, a connection that has sent no whole request is closed for a new one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    most: int = Field(
        default=4000,
        ge=4,
        description="From everywhere together; fewer where the limit on open files (`ulimit -Hn`) is below that.",
    )
    per_host: int = Field(
        default=500,
        ge=1,
        description="From one host; those on the loopback, and the reverse proxies in `proxies`, are not counted so.",
    )
    request_timeout: Duration = Field(
        default=timedelta(seconds=20),
        ge=timedelta(seconds=1),
        description="How long the head of a request may take to arrive, and its body besides 500 bytes a second.",
    )


FOREVER = "forever"
LONGEST = timedelta(days=36_500)


def _age(value: object) -> object:
    if value == FOREVER:
        return None
    try:
        return parse_duration(value, LONGEST) if isinstance(value, str) else value
    except SubletError as error:
        raise ValueError(error.sentences) from error


Age = Annotated[timedelta | None, BeforeValidator(_age)]
DAY = timedelta(days=1)


class RetentionSettings(BaseModel):
    """How long records are kept, as in `365d` or `forever`; once an hour some of what is older is removed.

    Sessions that run, or whose files are kept (`keep`), stay; what people used stays in `sublet usage` in any case.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    sessions: Age = Field(
        default=2 * 365 * DAY, ge=DAY, description="Sessions that ended, with their requests and offers."
    )
    events: Age = Field(default=365 * DAY, ge=DAY, description="Events of sessions that ended: `sublet events`.")
    audit: Age = Field(default=2 * 365 * DAY, ge=DAY, description="The audit log: `sublet audit`.")
    archive: Age = Field(
        default=10 * 365 * DAY, ge=DAY, description="Records of sessions in the archive: `sublet archive`."
    )
    archive_people: Age = Field(
        default=2 * 365 * DAY,
        ge=DAY,
        description="How long records keep the person's name and what they typed; afterwards they are anonymous.",
    )
    backups: int = Field(
        default=3, ge=1, le=1000, description="Copies of the database from before an upgrade, in `backups`."
    )


class UploadSettings(BaseModel):
    """How much people can upload, and how long it is kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    per_person: Size = Field(
        default=100 << 30, ge=0, description="The bytes, as in `100GiB`, that one person can have."
    )
    in_all: Size = Field(default=1 << 40, ge=0, description="The bytes that all people together can have.")
    most_files: int = Field(default=100_000, ge=1, description="The files that one upload can have.")
    keep: Duration = Field(
        default=30 * DAY, gt=timedelta(0), description="How long an upload is kept after the last file was added."
    )
    longest: Duration = Field(
        default=180 * DAY, gt=timedelta(0), description="How long its owner can have it kept, from today."
    )
    unfinished: Duration = Field(
        default=DAY,
        gt=timedelta(0),
        description="How long a file that did not come whole can be resumed after its last byte.",
    )


class ThrottleSettings(BaseModel):
    """How often one host or one person can try something, as in `200/10m`: so many at once, and so many in that time.

    A class of forty behind one address signs in within the defaults.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    sign_ins_per_host: Rate = Field(
        default=RateLimit(200, timedelta(minutes=10)),
        description="Codes by mail that one host asks for, whatever the addresses.",
    )
    sign_ins_per_person: Rate = Field(
        default=RateLimit(6, HOUR), description="Codes by mail that one host asks for, for one address."
    )
    sign_ins_per_address: Rate = Field(
        default=RateLimit(12, HOUR),
        description="Codes by mail that are sent to one address, whichever hosts ask; browsers that signed in by it "
        "before are not counted.",
    )
    codes_per_host: Rate = Field(
        default=RateLimit(400, timedelta(minutes=10)),
        description="Attempts to enter a code, and returns from OpenID providers, from one host. Each e-mailed code "
        "also allows five attempts.",
    )
    second_factors_per_person: Rate = Field(
        default=RateLimit(5, timedelta(minutes=10)), description="Tries of one person's second factor, from anywhere."
    )
    wrong_tokens_per_host: Rate = Field(
        default=RateLimit(120, timedelta(minutes=1)),
        description="Wrong or expired tokens from one host; valid ones still work.",
    )
    access_requests_per_host: Rate = Field(
        default=RateLimit(200, HOUR), description="Requests for access from one host; each is a mail to operators."
    )
    access_requests_per_person: Rate = Field(
        default=RateLimit(30, HOUR), description="Requests for access of one person."
    )
    refusals_per_person: Rate = Field(
        default=RateLimit(30, HOUR), description="Refused requests of one person that the audit log records."
    )
    proposals_per_person: Rate = Field(
        default=RateLimit(30, HOUR), description="Repositories that are fetched for one person who proposes apps."
    )
    asks_per_person: Rate = Field(
        default=RateLimit(600, timedelta(minutes=10)),
        description="Requests for offers of one person; only a gateway limits them.",
    )
    hook_tests_per_person: Rate = Field(
        default=RateLimit(30, timedelta(minutes=10)), description="Tests of webhooks by one person."
    )

    @property
    def limits(self) -> Mapping[str, RateLimit]:
        """All rate limits by name."""
        return {name: getattr(self, name) for name in type(self).model_fields}
