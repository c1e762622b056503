"""A bastion through which ssh reaches sessions' machines, by a ProxyCommand that records its messages.

ProxyJump can't do this: options for the target don't reach the bastion, and with a connection that stays open, ssh
shows nothing of what the bastion's own ssh says.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.reach.refusals import HostKey, last_words, read_refusal

ALWAYS = {  # nothing is asked interactively, and an unknown host key is refused
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "PermitLocalCommand": "no",
    "ForwardAgent": "no",
    "ControlMaster": "no",
    "ControlPath": "none",
}


@dataclass(frozen=True)
class Bastion:
    """The host, as USER@HOST:PORT or by its name in ~/.ssh/config; empty if there is none."""

    host: str = ""
    options: Mapping[str, str] = field(default_factory=dict)  # as in ssh_config(5)

    def write_command(self, words: Path) -> str:
        """Write the ProxyCommand through the bastion, whose messages go to a file."""
        settings = [f"-o{name}={value}" for name, value in (*ALWAYS.items(), *self.options.items())]  # the first counts
        address = f"ssh://{self.host}" if ":" in self.host else self.host
        before, after = (shlex.join(part).replace("%", "%%") for part in (["ssh", *settings], ["--", address]))
        return f"{before} -W '[%h]:%p' {after} 2>{shlex.quote(str(words)).replace('%', '%%')}"

    @contextmanager
    def explain_failures(self, platform: str, words: Path) -> Iterator[None]:
        """Replace the error for an unreachable machine by what the bastion said."""
        try:
            yield
        except PlatformUnreachable as error:
            text = words.read_text(errors="replace") if self.host and words.exists() else ""
            if not text:
                raise
            raise self._explain(platform, text, error) from error

    def _explain(self, platform: str, text: str, error: PlatformUnreachable) -> PlatformRefused | PlatformUnreachable:
        failure = read_refusal(platform, self.host, text)
        if isinstance(failure, PlatformUnreachable):
            why = f"{error.values.get('why', error.clause)}; {self.host} says: {last_words(text)}"
            return PlatformUnreachable(platform=platform, why=why)
        if failure.values.get("host_key") is HostKey.UNCONFIRMED:
            hint = f"Put the host key of {self.host} into the known_hosts of the service's account."
        else:
            hint = f"Check the user name and the key for {self.host}, and what it lets through."
        return PlatformRefused(failure.message, hint=hint)


NO_BASTION = Bastion()
