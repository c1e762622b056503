"""A bastion that ssh goes through to sessions' machines: by a command of its own, whose words are kept.

ProxyJump has neither: options for the machine behind don't reach the bastion, and beside a connection that stays open
ssh shows nothing of what the bastion's own ssh says.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.reach.refusals import HostKey, last_words, read_refusal

ALWAYS = {  # nobody is asked for anything, and a host key that is not known is refused
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "PermitLocalCommand": "no",
    "ForwardAgent": "no",
    "ControlMaster": "no",
    "ControlPath": "none",
}


@dataclass(frozen=True)
class Bastion:
    """The host, as USER@HOST:PORT or by its name in ~/.ssh/config; empty: there is none."""

    host: str = ""
    options: Mapping[str, str] = field(default_factory=dict)  # as in ssh_config(5)

    def write_command(self, words: Path) -> str:
        """The ProxyCommand that goes through it; what it says is written to a file."""
        settings = [f"-o{name}={value}" for name, value in (*ALWAYS.items(), *self.options.items())]  # the first holds
        address = f"ssh://{self.host}" if ":" in self.host else self.host
        before, after = (shlex.join(part).replace("%", "%%") for part in (["ssh", *settings], ["--", address]))
        return f"{before} -W '[%h]:%p' {after} 2>{shlex.quote(str(words)).replace('%', '%%')}"

    @contextmanager
    def explain_failures(self, platform: str, words: Path) -> Iterator[None]:
        """Raise what the bastion said, where a machine behind it can't be reached."""
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
