"""The pledges on a platform's page: operators add, change and remove those that aren't in the settings."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from sublet.booking.model.amounts import memory_text
from sublet.booking.model.pledged import Pledged
from sublet.kernel.errors import BadAmount
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.confirming import Confirmation
from sublet.web.words import Clock, count_text

COUNTS, TEXTS = ("cores", "gpus"), ("memory", "storage", "when", "zone", "title")
LABELS = {
    "pledge": ("Name", "Small letters, digits and -"),
    "cores": ("Cores", ""),
    "memory": ("Memory", "As in 512GiB"),
    "gpus": ("GPUs", ""),
    "storage": ("Storage", "Of all pools together, as in 20TiB"),
    "when": ("In force", "nights, weekends, or Mon-Fri 18:00-08:00; empty: always"),
    "zone": ("Time zone", "As in Europe/London; empty: UTC"),
    "title": ("Title", "Description"),
}


def fill_form(service: Service, platform: str, name: str) -> dict[str, str]:
    """Return the form of a pledge that can be changed; empty if there is none of this name."""
    if not name or not service.platforms.pledges.is_added(platform, name):
        return {}
    pledge = service.platforms.pledges.settings_of(platform)[name]
    sizes = {field: getattr(pledge, field) for field in ("memory", "storage")}
    filled = {"pledge": name, **{field: str(getattr(pledge, field) or "") for field in (*COUNTS, *TEXTS)}}
    return filled | {field: memory_text(size) if size else "" for field, size in sizes.items()}


def describe_pledge(pledged: Pledged) -> str:
    """Describe what is pledged besides cores."""
    parts = [memory_text(pledged.memory)] if pledged.memory else []
    parts += [count_text(pledged.gpus, "GPU")] if pledged.gpus else []
    return ", ".join([*parts, *([f"{memory_text(pledged.storage)} of storage"] if pledged.storage else [])])


def ask_removal(platform: str, name: str) -> Confirmation:
    """Return the question before a pledge is removed."""
    effects = (
        "It becomes open to everyone who may use the platform.",
        "Existing bookings and the rules about it stay.",
    )
    back = f"/web/platforms/{quote(platform, safe='')}"
    return Confirmation(f"Remove the pledge {name} of {platform}?", effects, "Remove the pledge", back)


async def put_pledge(
    service: Service, person: Person, platform: str, form: Mapping[str, str], clock: Clock, host: str
) -> None:
    """Add a pledge, or replace the one of this name by what the form says."""
    name, changes = form.get("pledge", "").strip(), service.access.pledge_changes
    amounts = {field: _read_count(form.get(field, "")) for field in COUNTS}
    texts = {field: form.get(field, "").strip() for field in TEXTS}
    is_there = service.platforms.pledges.is_added(platform, name)
    await (changes.edit if is_there else changes.add)(person, platform, name, {**amounts, **texts}, host)


async def remove_pledge(
    service: Service, person: Person, platform: str, form: Mapping[str, str], clock: Clock, host: str
) -> None:
    """Remove a pledge."""
    await service.access.pledge_changes.remove(person, platform, form.get("pledge", ""), host)


def _read_count(text: str) -> int:
    plain = text.strip()
    if plain and not (plain.isdecimal() and len(plain) < 10):
        raise BadAmount(text=plain[:40], what="a number", example="64")
    return int(plain or 0)
