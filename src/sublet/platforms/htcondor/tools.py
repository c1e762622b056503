"""HTCondor's command-line tools with one configuration: how to run them, and what their failures mean."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sublet.kernel.errors import AccessPointRefused, AccessPointUnreachable, SubletError
from sublet.platforms.htcondor.release import Release
from sublet.reach.port import Command, Outcome

T = TypeVar("T")
Ad = dict[str, Any]  # one ClassAd, as the tools print it in JSON
AWAY = re.compile(
    r"failed to connect|can't find (the )?address|unable to (contact|connect|locate)|could not find the local"
    r"|connection refused|timed? ?out|failed to fetch ads|error connecting|communication error|can't connect"
    r"|couldn't (contact|locate|connect)|failed to read (end of )?message|connection (reset|closed)",
    re.IGNORECASE,
)
_NOISE = re.compile(r"^(extra info:|\s*$)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Tools:
    """The tools of a release; `configuration` is the file they read, empty for the machine's own."""

    release: Release
    configuration: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    def words(self, program: str, *arguments: str, directory: str = "") -> tuple[str, ...]:
        """Return the command line of a tool, in a directory if one is given."""
        variables = {**({"CONDOR_CONFIG": self.configuration} if self.configuration else {}), **self.environment}
        place = (f"--chdir={directory}",) if directory else ()
        settings = (f"{name}={value}" for name, value in variables.items())
        return ("env", *place, *settings, self.release.program(program), *arguments)

    def command(
        self,
        words: Sequence[str],
        reader: Callable[[str], T],
        *,
        stdin: bytes = b"",
        directory: str = "",
        seconds: int = 60,
    ) -> Command[T]:
        """Make a command whose reader gets the tool's output, if it succeeded."""
        return Command(self.words(*words, directory=directory), reading(reader), stdin, seconds)


def limit_attributes(names: Iterable[str]) -> tuple[str, ...]:
    """Return the arguments that limit an answer to these attributes; without any, the whole ads are printed."""
    wanted = ",".join(names)
    return ("-attributes", wanted) if wanted else ()


def reading(reader: Callable[[str], T]) -> Callable[[Outcome], T]:
    """Wrap a reader of a tool's output so that it raises the right error if the tool failed."""

    def check(outcome: Outcome) -> T:
        if outcome.code:
            raise trouble(outcome)
        return reader(outcome.text)

    return check


def trouble(outcome: Outcome) -> SubletError:
    """Return the error for a tool's failure, in its own words without its advice."""
    whole = outcome.complaint
    words = " ".join(_NOISE.split(whole, maxsplit=1)[0].split()) or " ".join(whole.split())
    return (AccessPointUnreachable if AWAY.search(whole) else AccessPointRefused)(why=words)


def read_ads(text: str) -> list[Ad]:
    """Read the ads that a tool printed in JSON; no output means no ads."""
    if not text.strip():
        return []
    try:
        ads = json.loads(text)
    except ValueError as error:
        raise AccessPointRefused(why=f"its answer can't be read: {error}") from error
    return [ad for ad in ads if isinstance(ad, dict)]


def nothing(text: str) -> None:
    """Ignore the output of a command that needs only to succeed."""
