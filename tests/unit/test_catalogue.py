"""The catalogue's files: complete in form, sane in number, and every fact has a source with a date."""

from __future__ import annotations

import itertools
import os
import re
from datetime import date, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.request import GIB
from sublet.kernel.errors import BadRequest, BadSystem, NotFound
from sublet.systems import catalogue
from sublet.systems.model.system import NodeKind, Queue, System, age
from sublet.systems.own import Systems, merge_documents

NAMES = catalogue.names()
ALL = {name: catalogue.find_in_catalogue(name) for name in NAMES}
QUEUES = [(name, queue) for name, system in ALL.items() for queue in system.queues]
OWN = "like: expanse\nlogin:\n  hosts: [here]\n"


def own(tmp_path: Path, text: str, name: str = "mine") -> Systems:
    directory = tmp_path / "systems"
    directory.mkdir(exist_ok=True)
    (directory / f"{name}.yaml").write_text(text)
    return Systems(str(directory))


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(BadSystem) as raised:
        own(tmp_path, text).find("mine")
    assert "docs/guides/systems.md" in raised.value.advice
    return raised.value.message.removeprefix("The file of the system mine can't be read: ").removeprefix(
        str(tmp_path / "systems" / "mine.yaml")
    )


def test_there_are_many() -> None:
    assert len(NAMES) >= 29
    assert {"expanse", "frontier", "perlmutter", "stampede3", "lumi"} <= set(NAMES)


@pytest.mark.parametrize("system", ALL.values(), ids=NAMES)
def test_a_system_says_what_it_is_and_how_old_its_facts_are(system: System) -> None:
    assert system.title
    assert system.centre
    assert re.fullmatch("[A-Z]{2}", system.country)
    assert system.sure
    assert date(2026, 1, 1) <= date.fromisoformat(system.looked_at) <= date.today() + timedelta(days=1)
    assert system.hosts or system.alias
    assert system.scheduler in ("slurm", "pbs", "cobalt")
    assert not system.guide or system.guide.startswith("https://")


@pytest.mark.parametrize("system", ALL.values(), ids=NAMES)
def test_every_fact_has_a_source_and_every_source_a_date_and_a_use(system: System) -> None:
    known = {source.name for source in system.sources}
    groups = {"login", "scheduler"} | ({"network"} if system.outbound or system.leaning else set())
    assert groups | ({"files"} if system.files else set()) <= system.sourced.keys()
    used = {name for names in system.sourced.values() for name in names}
    for part in (*system.queues, *system.tools, *(kind for queue in system.queues for kind in queue.nodes)):
        assert part.sources
        used |= set(part.sources)
    assert used == known
    for source in system.sources:
        assert re.fullmatch(r"20[0-9]{2}(-[0-9]{2}(-[0-9]{2})?)?", source.date)
        assert source.date <= system.looked_at
        assert source.link or source.file or source.kind == "notes" or source.undated


@pytest.mark.parametrize(("name", "queue"), QUEUES, ids=[f"{name}:{queue.name}" for name, queue in QUEUES])
def test_the_numbers_of_a_queue_are_sane(name: str, queue: Queue) -> None:
    assert queue.max_nodes is None or queue.max_nodes <= 20_000
    assert queue.max_time is None or timedelta(minutes=10) <= queue.max_time <= timedelta(days=14)
    assert queue.min_time is None or queue.max_time is None or queue.min_time < queue.max_time
    assert all(0 <= charge.factor <= 200 and charge.unit for charge in queue.charges)
    assert all(quota.most > 0 for quota in queue.quotas)
    if queue.time_by_nodes:
        steps = queue.time_by_nodes
        assert max(step.time for step in steps) == queue.max_time
        assert all(after.min_nodes == before.max_nodes + 1 for before, after in itertools.pairwise(steps))
        assert steps[-1].max_nodes == queue.max_nodes
    for kind in queue.nodes:
        check_kind(kind)


def check_kind(kind: NodeKind) -> None:
    assert kind.cores or kind.memory or kind.gpus or kind.gpu
    assert kind.cores is None or 4 <= kind.cores <= 512
    assert 0 <= kind.gpus <= 16
    assert bool(kind.gpu) >= bool(kind.gpus)
    for amount in (kind.memory, kind.usable):
        assert amount is None or 16 * GIB <= amount <= 16 * 1024 * GIB
    if kind.memory and kind.usable:
        assert 0.85 * kind.memory <= kind.usable <= kind.memory


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_compact_and_has_no_empty_fact(name: str) -> None:
    text = Path(catalogue.DIRECTORY, f"{name}.yaml").read_text()
    assert len(text) < 9000
    assert not re.search(r":\s*(\[\]|\{\}|''|\"\"|unknown|null|~)?\s*$(?!\n[ -])", text, re.M)


def test_well_known_facts_are_there() -> None:
    frontier, stampede = ALL["frontier"], ALL["stampede3"]
    assert not frontier.shares_connections
    assert ALL["delta"].shares_connections
    batch = frontier.find_queue("batch")
    assert batch is not None
    assert next((step.max_nodes, step.time) for step in batch.time_by_nodes) == (91, timedelta(hours=2))
    assert "--mem" in stampede.refuses
    assert "constraint" in ALL["perlmutter"].needs
    assert ALL["archer2"].closes == "2026-11-21"
    assert ALL["isambard-ai"].certificate == timedelta(hours=12)
    assert ALL["lumi"].outbound == "open"
    assert ALL["expanse"].outbound == ""


@pytest.mark.parametrize(
    ("day", "words"),
    [
        ("2026-11-15", "today"),
        ("2026-11-16", "today"),
        ("2026-11-14", "1 day ago"),
        ("2026-11-03", "12 days ago"),
        ("2026-09-16", "60 days ago"),
        ("2026-08-15", "3 months ago"),
        ("2024-08-08", "2 years ago"),
    ],
)
def test_age_is_told_in_words(day: str, words: str) -> None:
    assert age(day, date(2026, 11, 15)) == words


def test_an_unknown_name_is_refused_and_the_nearest_suggested() -> None:
    with pytest.raises(NotFound) as raised:
        catalogue.find_in_catalogue("expense")
    assert "Did you mean expanse?" in raised.value.advice


def test_own_facts_are_put_over_the_catalogues(tmp_path: Path) -> None:
    text = OWN + "user: alice\nqueues:\n- {name: shared, max_time: 1h}\n- {name: new, node: cpu, max_nodes: 3}\n"
    system, base = own(tmp_path, text).find("mine"), ALL["expanse"]
    assert (system.name, system.like, system.hosts, system.user) == ("mine", "expanse", ("here",), "alice")
    assert system.factor == base.factor
    shared, before = system.find_queue("shared"), base.find_queue("shared")
    assert shared is not None
    assert before is not None
    assert (shared.max_time, shared.max_cores) == (timedelta(hours=1), before.max_cores)
    new = system.find_queue("new")
    assert new is not None
    assert new.nodes[0].cores == 128
    assert len(system.queues) == len(base.queues) + 1
    assert system.own == ("like", "login.hosts", "user", "queues")


def test_an_own_system_stands_for_the_catalogues_of_the_same_name(tmp_path: Path) -> None:
    systems = own(tmp_path, OWN, name="expanse")
    assert systems.find("expanse").hosts == ("here",)
    assert systems.names().count("expanse") == 1


def test_a_merge_goes_field_by_field_and_replaces_plain_lists() -> None:
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 4}
    assert merge_documents(base, {"a": {"c": [3]}, "e": 5}) == {"a": {"b": 1, "c": [3]}, "d": 4, "e": 5}
    assert base == {"a": {"b": 1, "c": [1, 2]}, "d": 4}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "like: expanse\nlogin:\n  host: x\n",
            ", line 3: login.host: there is no such field here; did you mean hosts?",
        ),
        ("like: nowhere\n", ", line 1: like: there is no nowhere in the catalogue."),
        ("like: expanze\n", ", line 1: like: there is no expanze in the catalogue. Did you mean expanse?"),
        ("queues:\n- name: a\n- max_nodes: 1\n", ", line 3: queues.1: it has no name."),
        ("queues:\n- name: a\n- name: a\n", ", line 3: queues.1.name: the queue a is there twice."),
        (
            "queues:\n- name: a\n  max_time: 10\n",
            ", line 3: queues.0.max_time: 10 is not a length of time. "
            "Write 10s for seconds, 10m for minutes, 10h for hours.",
        ),
        ("queues:\n- name: a\n  node: none\n", ", line 3: queues.0.node: there is no none among the nodes."),
        (
            "queues:\n- name: a\n  min_nodes: 9\n  max_nodes: 2\n",
            ", line 3: queues.0.min_nodes: it is more than max_nodes.",
        ),
        (
            "like: frontera\nqueues:\n- name: new\n- name: normal\n  max_nodes: 2\n",
            ", line 4: queues.1.min_nodes: it is more than max_nodes.",
        ),
        (
            "like: frontera\nnodes: {cpu: {cores: many}}\n",
            ", line 2: nodes.cpu.cores: many is not a count. Write a whole number from 1 to 10000000.",
        ),
        ("login: yes\n", ", line 1: login: yes stands where fields are expected."),
        (
            "login:\n  second_factor: yes\n",
            ", line 2: login.second_factor: yes can't stand here; write always or sometimes or never.",
        ),
        (
            "scheduler: {kind: Slurm 23}\n",
            ", line 1: scheduler.kind: Slurm 23 can't stand here; write a name in small letters, such as slurm.",
        ),
        (
            "login:\n  hosts: [good, -oProxyCommand=x]\n",
            ", line 2: login.hosts.1: -oProxyCommand=x is not one word, or begins with a dash.",
        ),
        ('user: "a b"\n', ", line 1: user: a b is not one word, or begins with a dash."),
        ("closes: soon\n", ", line 1: closes: soon is not a day; write it as 2026-11-15."),
        ("sources:\n  a: {kind: notes}\n", ", line 2: sources.a: a source needs its date."),
        ("login:\n  hosts: [a]\n  source: gone\n", ", line 3: login.source: there is no gone among the sources."),
        (
            "queues:\n- name: a\n  time_by_nodes: [{nodes: 1-4, time: 1h}, {nodes: 4-8, time: 1h}]\n",
            ", line 3: queues.0.time_by_nodes.1.nodes: it begins before the step above it ends.",
        ),
        ("login: [\n", ": not YAML: did not find expected node content at line 2, column 1"),
        ("", ": the document is empty"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_field(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text) == said


def test_a_new_system_is_readable_by_its_owner_alone_and_can_be_removed(tmp_path: Path) -> None:
    systems = Systems(str(tmp_path / "home" / "systems"))
    assert systems.own_names() == []
    assert systems.add("mine", {"like": "lumi", "project": "project_465"}).project == "project_465"
    assert [os.stat(place).st_mode & 0o777 for place in (tmp_path / "home", systems.directory)] == [0o700, 0o700]
    assert os.stat(systems.file("mine")).st_mode & 0o777 == 0o600
    assert systems.own_names() == ["mine"]
    systems.remove("mine")
    assert systems.own_names() == []


def test_adding_never_overwrites(tmp_path: Path) -> None:
    systems = own(tmp_path, OWN)
    with pytest.raises(BadRequest, match="already"):
        systems.add("mine", {"like": "lumi"})
    assert systems.find("mine").like == "expanse"


def test_a_system_that_could_not_be_read_is_not_kept(tmp_path: Path) -> None:
    systems = Systems(str(tmp_path))
    with pytest.raises(BadSystem):
        systems.add("mine", {"like": "nowhere"})
    assert systems.own_names() == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "-x", "A", "a b", "x" * 41, "ü"])
def test_a_name_that_could_not_be_a_files_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadRequest, match="can't be called"):
        Systems(str(tmp_path)).add(name, {})


@pytest.mark.parametrize(("name", "said"), [("lumi", "lumi is in the catalogue"), ("none", "There is no system none")])
def test_only_own_systems_can_be_removed(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        Systems(str(tmp_path)).remove(name)
