"""What the pilots at an access point tell of themselves, and how they are stopped: commands, and their answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from sublet.kernel.errors import AccessPointRefused
from sublet.platforms.htcondor.tools import Ad, Tools, limit_attributes, nothing, read_ads
from sublet.reach.port import Command, Outcome


def to_slots(tools: Tools, constraint: str = "true", attributes: Iterable[str] = ()) -> Command[list[Ad]]:
    """The slots that nodes offer."""
    return tools.command(("condor_status", "-json", "-constraint", constraint, *limit_attributes(attributes)), read_ads)


def to_schedds(tools: Tools) -> Command[list[Ad]]:
    """The schedds that the collector knows."""
    return tools.command(("condor_status", "-schedd", "-json"), read_ads)


def to_drain(tools: Tools, master: str, how: Literal["-quick", "-fast"] = "-quick") -> Command[None]:
    """Have a pilot take no more jobs and evict those that it has: by SIGTERM first, or fast, by SIGKILL."""
    return tools.command(("condor_drain", how, _slot(master)), nothing, seconds=60)


def to_drain_no_more(tools: Tools, master: str) -> Command[None]:
    """Take back an order to drain, so that another can be given."""
    return tools.command(("condor_drain", "-cancel", _slot(master)), nothing, seconds=60)


def _slot(master: str) -> str:
    """The slot by which a pilot's startd is found: the one that others are cut out of."""
    return f"slot1@{master}"


def to_stop(tools: Tools, masters: Iterable[str]) -> Command[None]:
    """Stop pilots at once, by the names of their masters (with an @ in them)."""
    names = (word for master in masters for word in ("-name", master))
    return tools.command(("condor_off", "-fast", "-master", *names), nothing, seconds=60)


def to_fetch_token(tools: Tools, may: Iterable[str], seconds: int) -> Command[str]:
    """A token for oneself from the schedd, limited to these permissions."""
    limits = [word for permission in may for word in ("-authz", permission)]
    words = ("condor_token_fetch", "-type", "SCHEDD", *limits, "-lifetime", str(seconds))
    return tools.command(words, str.strip)


def to_ping(tools: Tools, schedd: str, tokens: str) -> Command[None]:
    """See that a schedd, by its address, lets in who has nothing but these tokens: as a pilot comes to it."""
    settings = {"_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "IDTOKENS", "_CONDOR_SEC_TOKEN_DIRECTORY": tokens}
    alone = replace(tools, environment={**tools.environment, **settings})
    return Command(alone.words("condor_ping", "-address", schedd, "-type", "SCHEDD", "WRITE"), read_ping)


def to_advertise(tools: Tools, update: str, ad: str) -> Command[None]:
    """Tell the collector an ad, as `UPDATE_SCHEDD_AD`."""
    return tools.command(("condor_advertise", update, "-"), nothing, stdin=ad.encode())


def to_config(tools: Tools, *names: str) -> Command[dict[str, str]]:
    """The values that a configuration has for these names; what isn't defined is left out."""
    # condor_config_val ends with 1 when one of them is not defined, and says so on stderr.
    return Command(
        tools.words("condor_config_val", "-verbose", *names), lambda outcome: read_config(outcome.text, names)
    )


def read_ping(outcome: Outcome) -> None:
    """AccessPointRefused if who asked was not let in; the tool itself says no more than that."""
    if outcome.code:
        raise AccessPointRefused(why="its schedd does not let in who comes with a token")


def read_config(text: str, names: Iterable[str]) -> dict[str, str]:
    """The values of `NAME = value` lines; comments and undefined names are left out."""
    wanted = {name.upper(): name for name in names}
    values = {}
    for line in text.splitlines():
        name, mark, value = line.partition(" = ")
        if mark and name.strip().upper() in wanted:
            values[wanted[name.strip().upper()]] = value.strip()
    return values
