"""The option for an idempotency key."""

from __future__ import annotations

import click

key_option = click.option("--key", metavar="KEY", help="A text for this alone: typed again with it, it is done once.")
