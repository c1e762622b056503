"""A platform whose commands run over OpenSSH on another machine, or on this one if no host is named."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, PrivateAttr

from sublet.kernel.errors import PlatformUnreachable
from sublet.platforms.port import Platform
from sublet.reach.local import LocalReach
from sublet.reach.login import Login
from sublet.reach.port import Reach
from sublet.reach.unattended import Holding, UnattendedReach, by_key


class RemotePlatform(Platform):
    """How a system is reached: by a person's own login, or by a service account's key."""

    host: str = Field(default="", description="The login host, or its name in ~/.ssh/config; empty: it is here.")
    user: str = Field(default="", description="The user name there; empty: as ssh's own configuration says.")
    port: int = Field(default=0, ge=0, le=65535, description="The port of sshd there; 0: as ssh's configuration says.")
    ssh: dict[str, str] = Field(default_factory=dict, description="More options for ssh, as in ssh_config(5).")
    key: str = Field(default="", description="A service account's private key, to sign in without asking a person.")
    shared: bool = Field(default=True, description="Whether the centre allows many commands over one connection.")
    _reach: Reach | None = PrivateAttr(default=None)
    _login: Login | None = PrivateAttr(default=None)
    _holding: Holding | None = PrivateAttr(default=None)

    def use(self, reach: Reach) -> None:
        """Use this reach instead of the settings' own; call this before `open`."""
        self._reach = reach

    def hold_key(self, holding: Holding) -> None:
        """Set where the private key comes from while a login is opened, if it isn't a file. Call this before `open`."""
        self._holding = holding

    def way(self, control: Path) -> Reach:
        """Make the reach that the settings describe; `control` is the directory of the logins."""
        if not self.host:
            return LocalReach(self.name)
        login = Login(
            self.host,
            control=control,
            platform=self.name,
            user=self.user,
            port=self.port,
            options=self.ssh | by_key(self.key) if self.key else self.ssh,
            shared=self.shared,
        )
        if self.key:
            return UnattendedReach(login, self.key, self._holding)
        self._login = login
        return login.reach

    @property
    def site(self) -> str:
        """The login host and user; empty for this machine."""
        return f"{self.user}@{self.host}:{self.port}" if self.host else ""

    @property
    def asks_a_person(self) -> bool:
        """Whether it is reached by a person's own login."""
        return bool(self.host and not self.key)

    @property
    def login(self) -> Login | None:
        """The person's own login, if it is reached by that."""
        return self._login

    @property
    def reach(self) -> Reach:
        """The reach in use; raise PlatformUnreachable if the platform isn't open."""
        if self._reach is None:
            raise PlatformUnreachable(platform=self.name, why="it is not open")
        return self._reach
