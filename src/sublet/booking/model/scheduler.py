"""Options of a cluster's scheduler besides amounts and time: one value, and the table that it is made from.

A new option is one field of `SchedulerOptions`. The fields of short and full requests, the flags of the command
line, the options of leases and the flags of sbatch are made from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

PLAIN = r"[A-Za-z0-9_][\w.+@:,&|*()\[\]-]*"  # a name that Slurm accepts, or several with operators between them
FEATURES = r"[A-Za-z0-9_][\w=/.+@:,&|*()\[\]-]*"  # Kubernetes has them as labels: example.com/disk=ssd
MAIL = r"(?i)(begin|end|fail|requeue|time_limit|all|none)(,(begin|end|fail|requeue|time_limit|all|none))*"
NAME = re.compile(r"[a-z][a-z-]*")  # of a free option
VALUE = re.compile(r"[\x20-\x7e]{1,500}")  # of a free option
MOST_NICE = 2_147_483_645  # the largest that Slurm accepts
MOST_FREE = 20
OPTION = "option"  # the key of an option's description in a field's metadata


@dataclass(frozen=True, slots=True)
class Spec:
    """One scheduler option: its type, its help, its name in sbatch, and its allowed values."""

    name: str
    kind: type  # str, int, bool, or tuple for free options
    noun: str  # "A constraint": begins sentences about the option
    label: str  # of its field in a form
    help: str  # of its flag, and of its field
    metavar: str = "NAME"
    sbatch: str = ""  # its flag in sbatch; empty: the platform handles it in another way
    pattern: str = ""  # which text must match; empty: any single line
    most: int = 0  # the largest number that is allowed, from 0
    is_open: bool = False  # harms nobody else: on a gateway anyone may use it
    flag: str = ""  # on the command line, if it differs from the name

    @property
    def flag_name(self) -> str:
        """The option's flag on the command line."""
        return self.flag or f"--{self.name.replace('_', '-')}"


def _option(kind: type, noun: str, label: str, help: str, **more: Any) -> Any:
    default = {str: "", int: None, bool: False, tuple: ()}[kind]
    return field(default=default, metadata={OPTION: {"kind": kind, "noun": noun, "label": label, "help": help, **more}})


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """What is asked of a scheduler: one value from the request through the offer and the job to sbatch."""

    queue: str = _option(str, "A queue", "Queue", "On a cluster: only in this queue.")
    qos: str = _option(str, "A qos", "Quality of service", "On a cluster: the quality of service.", sbatch="qos")
    project: str = _option(str, "A project", "Project", "On a cluster: who pays.", sbatch="account")
    constraint: str = _option(
        str,
        "A constraint",
        "Constraint",
        "On a cluster: features that nodes must have.",
        metavar="FEATURES",
        sbatch="constraint",
        pattern=FEATURES,
        is_open=True,
    )
    nice: int | None = _option(
        int,
        "A nice value",
        "Nice value",
        "On a cluster: let others go first, by this much.",
        metavar="N",
        sbatch="nice",
        most=MOST_NICE,
        is_open=True,
    )
    reservation: str = _option(
        str,
        "A reservation",
        "Reservation",
        "On a cluster: run in this reservation.",
        sbatch="reservation",
        pattern=PLAIN,
    )
    licenses: str = _option(
        str,
        "Licenses",
        "Licenses",
        "On a cluster: licenses that it needs, as matlab@db:2.",
        metavar="NAME[:N]",
        sbatch="licenses",
        pattern=PLAIN,
    )
    exclusive: bool = _option(
        bool,
        "Nodes to itself",
        "Share its nodes with no other job",
        "On a cluster: share its nodes with no other job.",
        sbatch="exclusive",
    )
    mail: str = _option(
        str,
        "Mail",
        "Mail",
        "On a cluster: when its scheduler writes to you: begin,end,fail.",
        metavar="WHEN",
        sbatch="mail-type",
        pattern=MAIL,
    )
    gpu_type: str = _option(
        str,
        "A type of GPU",
        "Type of GPU",
        "On a cluster: only GPUs of this type, as a100.",
        metavar="TYPE",
        pattern=r"[A-Za-z0-9_][\w.-]*",
        is_open=True,
    )
    options: tuple[str, ...] = _option(  # NAME=VALUE, or NAME alone
        tuple,
        "An option",
        "Other options",
        "On a cluster: another option of sbatch. Can be repeated.",
        metavar="NAME[=VALUE]",
        flag="--option",
    )

    def list_asked(self) -> dict[str, Any]:
        """Return the options that are set, by name."""
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        return {option.name: values[option.name] for option in fields(self) if values[option.name] != option.default}

    def over(self, usual: SchedulerOptions) -> SchedulerOptions:
        """Return these options on top of the usual ones, with the free options of both."""
        return replace(usual, **self.list_asked() | {"options": (*usual.options, *self.options)})

    def document(self) -> dict[str, Any]:
        """Return the options as they are written in a request."""
        asked = self.list_asked()
        return asked | ({"options": dict(map(split_free, self.options))} if self.options else {})

    def words(self) -> Iterator[tuple[str, str]]:
        """Yield the flags of sbatch as names and values; an empty value means a flag without one."""
        specs = scheduler_specs()
        for name, value in self.list_asked().items():
            if specs[name].sbatch:
                yield specs[name].sbatch, "" if value is True else str(value)
        yield from self.free()

    def free(self) -> Iterator[tuple[str, str]]:
        """Yield the free options as names and values; an empty value means a flag without one."""
        for text in self.options:
            name, _, value = text.partition("=")
            yield name, value


@cache
def scheduler_specs() -> Mapping[str, Spec]:
    """Return all options by name."""
    return {option.name: Spec(option.name, **option.metadata[OPTION]) for option in fields(SchedulerOptions)}


NOTHING_ASKED = SchedulerOptions()
SCHEDULER_NAMES = tuple(scheduler_specs())


def type_option(spec: Spec, value: Any) -> Any:
    """Convert what a person typed to the form of a request; free options come as a list of texts."""
    if spec.kind is tuple:
        return dict(split_free(text.removeprefix("--")) for text in value)
    return int(value) if spec.kind is int and value.isascii() and value.isdigit() else value


def split_free(text: str) -> tuple[str, str | bool]:
    """Split `NAME=VALUE` into a name and a value; `NAME` alone has the value True."""
    name, equals, value = text.partition("=")
    return name, value if equals else True
