"""Reloads settings while the service runs: some take effect at once, others need a restart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sublet.kernel.log import log
from sublet.kernel.mail import Mail
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle
from sublet.platforms.registry import load_platforms
from sublet.policies import has_owner

RELOADED = frozenset(
    {
        *(
            "hold",
            "most_held",
            "offers",
            "longest",
            "horizon",
            "release",
            "keep",
            "longest_keep",
            "warn",
            "claim",
            "poll",
        ),
        *("prices", "rules", "tokens", "mail", "images", "hooks", "apps", "maintainers", "signing", "throttle"),
        "policy",
        *("logs", "retention", "uploads", "cybergis"),
    }
)


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The names of the settings that changed."""

    taken: Sequence[str]
    need_restart: Sequence[str]


def reload_settings(settings: Settings, throttle: Throttle, mail: Mail, new: Settings) -> Reloaded:
    """Apply the settings that can change at runtime, and log those that need a restart; BadSettings changes nothing."""
    _check(settings, new)
    changed = [name for name in Settings.model_fields if getattr(new, name) != getattr(settings, name)]
    taken = [name for name in changed if name in RELOADED]
    settings.take_up(new, taken)
    throttle.change_limits(settings.throttle.limits)
    mail.settings = settings.mail
    reloaded = Reloaded(taken, [name for name in changed if name not in RELOADED])
    log.info("settings.reloaded", taken=reloaded.taken, need_restart=reloaded.need_restart)
    return reloaded


def _check(settings: Settings, new: Settings) -> None:
    """Raise BadSettings if the service couldn't start with the new settings, or would run in another mode."""
    if has_owner(new) != has_owner(settings):
        kinds = ("a personal service", "a gateway") if has_owner(settings) else ("a gateway", "a personal service")
        raise new.refuse(("mode",), "this is {}, and would be {} by these settings".format(*kinds))
    if new.platforms != settings.platforms:
        load_platforms(new.platforms, new.refuse)
