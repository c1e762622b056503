"""CyberGIS' `hpc` objects: what each of their fields becomes here, or why it isn't used."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sublet.access.model.account import CAPACITY, CONNECTORS
from sublet.kernel.errors import BadAccount

State = Literal["taken", "left out", "refused"]
_LOAD = re.compile(r"\s*module\s+load\s+([A-Za-z0-9._/+ -]+?)\s*;?\s*")
_OPTION = re.compile(r"\s*(?:#SBATCH\s+)?--([a-z][a-z-]*)(?:[=\s]\s*(.+?))?\s*")
# Lines that only prepare the job's shell: variables, its directory, files it sources, an empty folder.
_PREPARES = re.compile(
    r"(?:export\s+)?([A-Za-z_]\w*)=(?:\"[^\"]*\"|'[^']*'|\$\([^)]*\)|[^\s;&|]*)"
    r"|cd(?:\s+[^\s;&|]+)?|(?:source|\.)\s+[^\s;&|]+|mkdir\s+(?:-p\s+)?[^\s;&|]+"
)
_TOOLS = ("SINGULARITY", "APPTAINER")  # variables that change what containers see
_AMOUNTS = frozenset({"ntasks", "ntasks-per-node", "cpus-per-task", "mem", "time"})  # each app states these itself
OWN = {"account": "project", "partition": "queue", "qos": "qos"}  # options that are fields of an account


@dataclass(frozen=True, slots=True)
class Note:
    """What became of one field.

    A `refused` field would change how jobs run, so an operator must leave it out explicitly.
    """

    field: str
    state: State
    words: str


@dataclass
class ImportPlan:
    """One `hpc` object as an account."""

    name: str
    fields: dict[str, Any] = field(default_factory=dict)  # of access.model.account.Account
    notes: list[Note] = field(default_factory=list)
    key_path: str = ""  # of the private key, relative to the document
    rules: list[dict[str, Any]] = field(default_factory=list)  # effect, who, limits
    problem: str = ""  # why it can't be an account here; others in the document may still be

    def take(self, name: str, words: str, **values: Any) -> None:
        """Record a field that is used."""
        self.fields |= values
        self.notes.append(Note(name, "taken", words))

    def leave(self, name: str, words: str) -> None:
        """Record a field that has no effect here."""
        self.notes.append(Note(name, "left out", words))

    def refuse(self, name: str, words: str) -> None:
        """Record a field that isn't supported here."""
        self.notes.append(Note(name, "refused", words))

    @property
    def refused(self) -> tuple[str, ...]:
        """The fields that an operator has to leave out explicitly."""
        return tuple(dict.fromkeys(note.field for note in self.notes if note.state == "refused"))


def read_hpc(document: object, allowed: Collection[str]) -> list[ImportPlan]:
    """Plan the accounts of a document: name → `hpc` object. `allowed` are the scheduler options that may be added."""
    if (
        not isinstance(document, Mapping)
        or not document
        or not all(isinstance(value, Mapping) for value in document.values())
    ):
        raise BadAccount(name="", why="the document is not a mapping of names to `hpc` objects")
    return [_plan_or_problem(str(name), values, allowed) for name, values in document.items()]


def _plan_or_problem(name: str, values: Mapping[str, Any], allowed: Collection[str]) -> ImportPlan:
    """Plan one account; one that is invalid gets a problem, so that the others can still be planned."""
    try:
        return _plan(name, values, allowed)
    except BadAccount as error:
        return ImportPlan(name.lower(), problem=str(error.values["why"]))


def _plan(name: str, values: Mapping[str, Any], allowed: Collection[str]) -> ImportPlan:
    plan = ImportPlan(name.lower())
    if plan.name != name:
        plan.take("name", f"{name} is called {plan.name} here")
    for key, value in values.items():
        reader = READERS.get(key)
        if key == "init_sbatch_options":
            _options(plan, value, allowed)
        elif value is None or value in ("", [], {}):
            plan.leave(key, "it is empty")
        elif reader is None:
            plan.refuse(key, "no such field is known here")
        else:
            reader(plan, key, value)
    for key in ("ip", "community_login"):
        if not values.get(key):
            raise BadAccount(name=plan.name, why=f"it has no {key}")
    plan.fields.setdefault("capacity", CAPACITY)
    return plan


def _word(target: str, words: str) -> Callable[[ImportPlan, str, Any], None]:
    def read(plan: ImportPlan, key: str, value: Any) -> None:
        if not isinstance(value, str):
            raise BadAccount(name=plan.name, why=f"{key} is not a text")
        plan.take(key, words.format(value), **{target: value})

    return read


def _number(target: str, words: str) -> Callable[[ImportPlan, str, Any], None]:
    def read(plan: ImportPlan, key: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadAccount(name=plan.name, why=f"{key} is not a whole number")
        plan.take(key, words.format(value), **{target: value})

    return read


def _community(plan: ImportPlan, key: str, value: Any) -> None:
    if value is not True:
        why = "it is a person's own account, and a gateway takes nobody's password: it is for a Sublet of their own"
        raise BadAccount(name=plan.name, why=why)
    plan.take(key, "a community account")


def _login(plan: ImportPlan, key: str, value: Any) -> None:
    if not isinstance(value, Mapping) or not isinstance(value.get("user"), str):
        raise BadAccount(name=plan.name, why="community_login has no user")
    plan.take(f"{key}.user", f"the user {value['user']} there", user=value["user"])
    outer = value.get("external_key") or {}
    path = outer.get("private_key_path") if isinstance(outer, Mapping) else None
    if value.get("use_local_key"):
        plan.take(f"{key}.use_local_key", "the key has to be given once (--key FILE), and is then stored sealed")
    elif isinstance(path, str) and path:
        plan.key_path = path
        plan.take(f"{key}.external_key", f"read once from {path}, then stored sealed: the file can go")
    unknown = [name for name in value if name not in ("user", "use_local_key", "external_key")]
    for name in unknown:
        plan.refuse(f"{key}.{name}", "no such field is known here")


def _connector(plan: ImportPlan, key: str, value: Any) -> None:
    if value not in CONNECTORS:
        known = ", ".join(CONNECTORS)
        raise BadAccount(name=plan.name, why=f"its connector {value!r} is not known here; these are: {known}")
    plan.take(key, f"a platform of kind {CONNECTORS[value]}", connector=value)


def _script(plan: ImportPlan, key: str, value: Any) -> None:
    """Read shell lines that run outside any container: module loads are used, other lines aren't."""
    for line in _lines(value):
        if match := _LOAD.fullmatch(line):
            plan.take(
                key, f"`{line.strip()}`: loaded in every job", modules=(*_had(plan, "modules"), *match[1].split())
            )
        elif words := line.strip().partition(" #")[0].strip():
            _shell_line(plan, key, words)


def _shell_line(plan: ImportPlan, key: str, line: str) -> None:
    if line.startswith("#"):
        return
    prepares = _PREPARES.fullmatch(line)
    if prepares and not str(prepares[1] or "").startswith(_TOOLS):
        plan.leave(key, f"`{line}`: it prepares a shell outside the container, of which an app sees nothing")
    else:
        plan.refuse(key, f"`{line}`: no line of a shell is run outside the container under this account")


def _options(plan: ImportPlan, value: Any, allowed: Collection[str]) -> None:
    for line in _lines(value):
        match = _OPTION.fullmatch(line)
        if not match:
            plan.refuse("init_sbatch_options", f"`{line.strip()}`: it is not an option of the form --name=value")
        elif match[1] in OWN and match[2]:
            plan.take("init_sbatch_options", f"`{line.strip()}`: its {OWN[match[1]]}", **{OWN[match[1]]: match[2]})
        elif match[1] == "nodes" and str(match[2]).isdigit():
            plan.rules.append({"effect": "deny", "who": "*", "limits": {"nodes": int(match[2])}})
            plan.take("init_sbatch_options", f"`{line.strip()}`: nobody gets more nodes")
        elif match[1] in _AMOUNTS:
            plan.leave("init_sbatch_options", f"`{line.strip()}`: each app says how much it needs")
        elif match[1] not in allowed:
            plan.refuse("init_sbatch_options", f"`{line.strip()}`: --{match[1]} can't be added to jobs here")
        else:
            option = f"--{match[1]}={match[2]}" if match[2] else f"--{match[1]}"
            plan.take("init_sbatch_options", f"`{option}`: in every job", options=(*_had(plan, "options"), option))


def _had(plan: ImportPlan, name: str) -> tuple[str, ...]:
    values: tuple[str, ...] = plan.fields.get(name, ())
    return values


def _lines(value: Any) -> list[str]:
    lines = value if isinstance(value, list) else [value] if value else []
    return [line for text in lines for line in str(text).splitlines()]


def _people(effect: str) -> Callable[[ImportPlan, str, Any], None]:
    def read(plan: ImportPlan, key: str, value: Any) -> None:
        who = [str(name).lower() for name in value] if isinstance(value, list) else []
        plan.rules += [{"effect": effect, "who": name} for name in who]
        plan.take(key, f"{len(who)} rule{'' if len(who) == 1 else 's'}: {effect} {', '.join(who)}")

    return read


def _globus(plan: ImportPlan, key: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise BadAccount(name=plan.name, why="globus is not a mapping")
    known = {name: str(value[name]) for name in ("endpoint", "root_path") if value.get(name)}
    plan.take(key, "kept, and shown: data comes by the ways that `sublet ask` lists", globus=known)
    if value.get("identity"):
        plan.leave(f"{key}.identity", "nobody's own Globus identity is used for others")


def _limits(plan: ImportPlan, key: str, value: Any) -> None:
    """Read the most of each amount that a job may have, as a cap for everybody."""
    limits: dict[str, Any] = {}
    for name, rule in value.items() if isinstance(value, Mapping) else ():
        most = rule.get("max") if isinstance(rule, Mapping) else rule
        unit = str(rule.get("unit") or "") if isinstance(rule, Mapping) else ""
        limit = _limit(name, most, unit)
        if isinstance(limit, str):
            plan.refuse(f"{key}.{name}", limit)
        else:
            limits |= limit
            plan.take(f"{key}.{name}", f"nobody gets more: {', '.join(f'{k} {v}' for k, v in limit.items())}")
    if limits:
        plan.rules.append({"effect": "deny", "who": "*", "limits": limits})


def _limit(name: str, most: Any, unit: str) -> dict[str, Any] | str:
    if isinstance(most, bool) or not isinstance(most, int | float) or most <= 0:
        return "it has no `max` that is a number"
    if name in LIMITS:
        return {LIMITS[name]: int(most)}
    if name == "time":
        return {"time": f"{most:g}{ {'days': 'd', 'hours': 'h'}.get(unit.lower(), 'min') }"}
    if name == "memory":
        return {"memory": f"{most:g}{ {'mb': 'MiB'}.get(unit.lower(), 'GiB') }"}
    return "there is no limit of that amount here; say it as a limit of cores, memory, gpus or nodes of the session"


def _targets(mount: Any) -> str:
    """List the paths at which containers saw the mounts."""
    return ", ".join(map(str, mount.values())) if isinstance(mount, Mapping) else "it"


def _declarations(mount: Any) -> str:
    """Return the commands that declare the mounts as places of the new account."""
    pairs = mount.items() if isinstance(mount, Mapping) else [("DIRECTORY", "NAME")]
    words = [
        f"sublet place add {str(to).strip('/').replace('/', '_')} --on ACCOUNT --path {path}" for path, to in pairs
    ]
    return "; ".join(words)


LIMITS = {"num_of_node": "nodes", "num_of_task": "cores", "gpus": "gpus"}
READERS: dict[str, Callable[[ImportPlan, str, Any], None]] = {
    "ip": _word("host", "its address {}"),
    "port": _number("port", "port {}"),
    "is_community_account": _community,
    "community_login": _login,
    "connector": _connector,
    "root_path": _word("directory", "sessions are kept below {}"),
    "job_pool_capacity": _number("capacity", "{} sessions at the site at once, shared fairly between people"),
    "description": _word("description", "shown to everybody"),
    "allocation": _word("project", "the allocation {} pays"),
    "partition": _word("queue", "the partition {}"),
    "init_sbatch_script": _script,
    "globus": _globus,
    "allowlist": _people("allow"),
    "denylist": _people("deny"),
    "slurm_input_rules": _limits,
    "slurm_global_cap": _limits,
    "mount": lambda plan, key, value: plan.leave(
        key,
        f"apps that read {_targets(value)} see it once it is declared as a place: {_declarations(value)} "
        "(`sublet app check` says which apps do)",
    ),
    "xsede_job_log_credential": lambda plan, key, value: plan.leave(
        key, "usage per person is exported by `sublet usage`, and named in each job's record; this key is not stored"
    ),
}
