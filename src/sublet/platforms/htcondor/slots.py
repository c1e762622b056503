"""Commands for the pilots at an access point: list their slots, and stop them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from sublet.kernel.errors import AccessPointRefused
from sublet.platforms.htcondor.tools import Ad, Tools, limit_attributes, nothing, read_ads
from sublet.reach.port import Command, Outcome


def to_slots(tools: Tools, constraint: str = "true", attributes: Iterable[str] = ()) -> Command[list[Ad]]:
    """List the slots that nodes offer."""
    return tools.command(("condor_status", "-json", "-constraint", constraint, *limit_attributes(attributes)), read_ads)


def to_schedds(tools: Tools) -> Command[list[Ad]]:
    """List the schedds that the collector knows."""
    return tools.command(("condor_status", "-schedd", "-json"), read_ads)


def to_drain(tools: Tools, master: str, how: Literal["-quick", "-fast"] = "-quick") -> Command[None]:
    """Have a pilot accept no more jobs and evict those that it has: by SIGTERM first, or fast, by SIGKILL."""
    return tools.command(("condor_drain", how, _slot(master)), nothing, seconds=60)


def to_drain_no_more(tools: Tools, master: str) -> Command[None]:
    """Cancel an order to drain, so that another one can be given."""
    return tools.command(("condor_drain", "-cancel", _slot(master)), nothing, seconds=60)


def _slot(master: str) -> str:
    """Return the slot by which a pilot's startd is found: the partitionable one."""
    return f"slot1@{master}"


def to_stop(tools: Tools, masters: Iterable[str]) -> Command[None]:
    """Stop pilots at once, by the names of their masters (with an @ in them)."""
    names = (word for master in masters for word in ("-name", master))
    return tools.command(("condor_off", "-fast", "-master", *names), nothing, seconds=60)


def to_fetch_token(tools: Tools, may: Iterable[str], seconds: int) -> Command[str]:
    """Fetch a token for this user from the schedd, limited to these permissions."""
    limits = [word for permission in may for word in ("-authz", permission)]
    words = ("condor_token_fetch", "-type", "SCHEDD", *limits, "-lifetime", str(seconds))
    return tools.command(words, str.strip)


def to_ping(tools: Tools, schedd: str, tokens: str) -> Command[None]:
    """Check that a schedd, by its address, accepts a client that has only these tokens, as a pilot would."""
    settings = {"_CONDOR_SEC_CLIENT_AUTHENTICATION_METHODS": "IDTOKENS", "_CONDOR_SEC_TOKEN_DIRECTORY": tokens}
    alone = replace(tools, environment={**tools.environment, **settings})
    return Command(alone.words("condor_ping", "-address", schedd, "-type", "SCHEDD", "WRITE"), read_ping)


def to_advertise(tools: Tools, update: str, ad: str) -> Command[None]:
    """Send an ad to the collector, as `UPDATE_SCHEDD_AD`."""
    return tools.command(("condor_advertise", update, "-"), nothing, stdin=ad.encode())


def to_config(tools: Tools, *names: str) -> Command[dict[str, str]]:
    """Read the values of these names in the configuration; undefined names are left out."""
    # condor_config_val exits with 1 if one of them isn't defined, with a message on stderr.
    return Command(
        tools.words("condor_config_val", "-verbose", *names), lambda outcome: read_config(outcome.text, names)
    )


def read_ping(outcome: Outcome) -> None:
    """Raise AccessPointRefused if the token was refused; the tool gives no reason."""
    if outcome.code:
        raise AccessPointRefused(why="its schedd does not let in who comes with a token")


def read_config(text: str, names: Iterable[str]) -> dict[str, str]:
    """Read the values of `NAME = value` lines; comments and undefined names are left out."""
    wanted = {name.upper(): name for name in names}
    values = {}
    for line in text.splitlines():
        name, mark, value = line.partition(" = ")
        if mark and name.strip().upper() in wanted:
            values[wanted[name.strip().upper()]] = value.strip()
    return values
