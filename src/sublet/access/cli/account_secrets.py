"""What an operator provides for an account by hand: its key, a passphrase, and the confirmation of host keys."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from sublet.access.calls import accounts
from sublet.access.model.account import fingerprint
from sublet.access.model.known_hosts import read_host_keys
from sublet.cli.output import Output
from sublet.cli.prompts import ask_for, ask_yes_or_no
from sublet.kernel.errors import BadRequest, PassphraseNeeded, UnknownHostKey

LONGEST = 1 << 16  # bytes of a key


def read_file(path: str, what: str) -> str:
    """Return a file's text; `-` reads standard input."""
    try:
        if path == "-":
            return sys.stdin.read(LONGEST)
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            return file.read(LONGEST)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadRequest(f"{path} can't be read: {why}.", hint=f"Name the file of {what}.") from error


def with_passphrase(out: Output, wish: dict[str, Any], send: Any) -> Any:
    """Send a request; if its key has a passphrase, prompt for it and send again. It is never an argument."""
    try:
        return send(wish)
    except PassphraseNeeded:
        asked = _passphrase(out)
        if not asked:
            raise
    return send({**wish, "passphrase": asked})


def _passphrase(out: Output) -> str:
    if out.can_ask:
        return ask_for(
            "Passphrase of the key", "Type it in a terminal, or name a program in SSH_ASKPASS.", hide_input=True
        )
    program = os.environ.get("SSH_ASKPASS", "")
    if not program:
        return ""
    done = subprocess.run([program, "Passphrase of the key: "], stdout=subprocess.PIPE, check=False, text=True)
    return done.stdout.rstrip("\n") if done.returncode == 0 else ""


def confirm_host_keys(out: Output, host: str, port: int, given: str, print_: str) -> tuple[str, ...]:
    """Return the confirmed host keys: by a file or line, by a fingerprint, or by asking the user."""
    if given:
        text = read_file(given, "host keys") if given == "-" or os.path.exists(given) else given
        keys = read_host_keys(text, host, port)
        if not keys:
            raise UnknownHostKey(
                f"There is no key of {host} in {given}.", hint="Give a known_hosts file or a line of one."
            )
        return keys
    shown = out.link().do(accounts.host_keys(host, port)).items
    if print_:
        keys = tuple(key_view.key for key_view in shown if fingerprint(key_view.key) == print_)
        if not keys:
            others = ", ".join(key_view.fingerprint for key_view in shown)
            raise UnknownHostKey(f"{host} does not show {print_}, but {others}.", hint="Someone may be in between.")
        return keys
    out.note(f"{host} port {port} shows these keys. Compare them with what its centre publishes:")
    for key_view in shown:
        out.note(f"  {key_view.key.split()[0]:<20} {key_view.fingerprint}")
    if not out.can_ask or not ask_yes_or_no(
        "Are they the centre's own?", "Confirm them with --fingerprint or --host-key."
    ):
        raise UnknownHostKey(host=host)
    return tuple(key_view.key for key_view in shown)
