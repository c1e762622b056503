"""What a person can ask of a cluster's scheduler beside amounts and time: one value, and the table that it is made of.

A further option is one line in `SchedulerOptions`. The words of the short form and of the full one, the flags of the
command line, what a lease can say, and the words for sbatch are made from that line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

PLAIN = r"[A-Za-z0-9_][\w.+@:,&|*()\[\]-]*"  # what Slurm can know by a name, or by several with signs between them
FEATURES = r"[A-Za-z0-9_][\w=/.+@:,&|*()\[\]-]*"  # Kubernetes knows them as labels: example.com/disk=ssd
MAIL = r"(?i)(begin|end|fail|requeue|time_limit|all|none)(,(begin|end|fail|requeue|time_limit|all|none))*"
NAME = re.compile(r"[a-z][a-z-]*")  # of a free option
VALUE = re.compile(r"[\x20-\x7e]{1,500}")  # of a free option
MOST_NICE = 2_147_483_645  # that Slurm knows
MOST_FREE = 20
OPTION = "option"  # under which a field says what it is


@dataclass(frozen=True, slots=True)
class Spec:
    """One option of a scheduler: its type, its help, what sbatch calls it, and what it may be."""

    name: str
    kind: type  # str, int, bool, or tuple for free options
    noun: str  # "A constraint": how a sentence begins that is about it
    label: str  # of its field in a form
    help: str  # of its flag, and of its field
    metavar: str = "NAME"
    sbatch: str = ""  # what sbatch calls it; empty: its platform says it otherwise
    pattern: str = ""  # that text must match; empty: any one line
    most: int = 0  # of a number, from 0
    is_open: bool = False  # harms nobody else: on a gateway anyone may say it
    flag: str = ""  # on the command line, if not by its name

    @property
    def flag_name(self) -> str:
        """What the command line calls it."""
        return self.flag or f"--{self.name.replace('_', '-')}"


def _option(kind: type, noun: str, label: str, help: str, **more: Any) -> Any:
    default = {str: "", int: None, bool: False, tuple: ()}[kind]
    return field(default=default, metadata={OPTION: {"kind": kind, "noun": noun, "label": label, "help": help, **more}})


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """What is asked of a scheduler: from the request, by its offer and its job, to the words for sbatch."""

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
        """What was asked for, by its name."""
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        return {option.name: values[option.name] for option in fields(self) if values[option.name] != option.default}

    def over(self, usual: SchedulerOptions) -> SchedulerOptions:
        """These, and where they say nothing, the usual ones; free options of both."""
        return replace(usual, **self.list_asked() | {"options": (*usual.options, *self.options)})

    def document(self) -> dict[str, Any]:
        """As a request's document has it."""
        asked = self.list_asked()
        return asked | ({"options": dict(map(split_free, self.options))} if self.options else {})

    def words(self) -> Iterator[tuple[str, str]]:
        """What sbatch is told: each option's name and value; an empty value is none."""
        specs = scheduler_specs()
        for name, value in self.list_asked().items():
            if specs[name].sbatch:
                yield specs[name].sbatch, "" if value is True else str(value)
        yield from self.free()

    def free(self) -> Iterator[tuple[str, str]]:
        """The free options, as names and values; an empty value is none."""
        for text in self.options:
            name, _, value = text.partition("=")
            yield name, value


@cache
def scheduler_specs() -> Mapping[str, Spec]:
    """The table: name → option."""
    return {option.name: Spec(option.name, **option.metadata[OPTION]) for option in fields(SchedulerOptions)}


NOTHING_ASKED = SchedulerOptions()
SCHEDULER_NAMES = tuple(scheduler_specs())


def type_option(spec: Spec, value: Any) -> Any:
    """What a person typed, as a request's document has it; free options are a list of texts."""
    if spec.kind is tuple:
        return dict(split_free(text.removeprefix("--")) for text in value)
    return int(value) if spec.kind is int and value.isascii() and value.isdigit() else value


def split_free(text: str) -> tuple[str, str | bool]:
    """`NAME=VALUE` as a name and a value, `NAME` as one that is on."""
    name, equals, value = text.partition("=")
    return name, value if equals else True
