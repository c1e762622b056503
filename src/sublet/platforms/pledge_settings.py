"""A pledge in the settings of a platform."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sublet.booking.model.pledged import AMOUNTS, STORAGE, Pledged
from sublet.booking.model.schedule import parse_schedule
from sublet.kernel.settings_operation import Size


class PledgeSettings(BaseModel):
    """A part of a platform's capacity with its own rule of who may use it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cores: int | None = Field(default=None, ge=1, description="How many cores are pledged, on whichever nodes.")
    memory: Size | None = Field(default=None, ge=1, description="How much memory, as in `512GiB`.")
    gpus: int | None = Field(default=None, ge=1, description="How many GPUs.")
    storage: Size | None = Field(default=None, ge=1, description="How much storage, of all pools together.")
    when: str = Field(
        default="",
        description="When it is in force, as in `Mon-Fri 18:00-08:00, Sat-Sun` or `nights, weekends`: else all but its "
        "storage is open. Empty: always.",
    )
    zone: str = Field(default="UTC", description="The time zone of `when`, as in `Europe/London`.")
    title: str = Field(default="", max_length=200, description="A description.")

    @model_validator(mode="after")
    def _meaningful(self) -> Self:
        if all(getattr(self, name) is None for name in (*AMOUNTS, STORAGE)):
            raise ValueError("say what is pledged: cores, memory, gpus or storage")
        if self.when:
            parse_schedule(self.when, self.zone)
        return self

    @property
    def spoken(self) -> str:
        """The pledge's schedule as text; empty if the pledge is always in force."""
        return f"{self.when} ({self.zone})" if self.when else ""

    @property
    def pledged(self) -> Pledged:
        """The pledge as a value of the model."""
        when = parse_schedule(self.when, self.zone) if self.when else None
        return Pledged(self.cores, self.memory, self.gpus, self.storage, when)
