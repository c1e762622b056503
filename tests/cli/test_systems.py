"""`sublet system`: a catalogue that needs no service, one's own systems over it, and what they would refuse."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from sublet.booking.platforms.systems import systems_of
from sublet.kernel.settings import Settings
from sublet.systems import catalogue
from sublet.systems.cli.systems import system as group
from tests.cli.conftest import Type


def aged(text: str) -> str:
    """The same on every day."""
    return re.sub(r"(today|\d+ (day|month|year)s? ago)", "AGO", text)


def test_the_list_has_the_catalogue_with_its_age_and_own_systems_first(type_in: Type) -> None:
    before = type_in("system", "list", "--quiet").out.split()
    assert before == catalogue.names()
    type_in("system", "add", "zeta", "--host", "login.example.org")
    lines = aged(type_in("system", "list").out).splitlines()
    assert lines[0].split() == ["NAME", "TITLE", "SCHEDULER", "QUEUES", "LOOKED", "AT", "CENTRE"]
    assert lines[1].split() == ["zeta", "own", "zeta", "slurm", "-", "-"]
    assert re.fullmatch(r"expanse +- +Expanse +slurm +14 +AGO +San Diego Supercomputer Center \(SDSC\)", lines[11])
    listed = json.loads(type_in("system", "list", "--json").out)
    assert listed[0]["own"]
    assert {"name", "title", "centre", "looked_at", "queues"} <= listed[1].keys()


def test_a_system_is_shown_with_everything_and_who_says_so(type_in: Type) -> None:
    assert aged(type_in("system", "show", "andes").out) == snapshot("""\
system     andes: Andes
centre     Oak Ridge Leadership Computing Facility (OLCF), US
guide      https://docs.olcf.ornl.gov/systems/andes_user_guide.html
looked at  2026-11-15, AGO
how sure   well known

Login
  hosts          andes.olcf.ornl.gov
  ways in        PIN and token code
  second factor  always, RSA SecurID: PIN and token code
  connections    each signs in anew: sharing one is forbidden
  note           The centre switches shared connections off: each connection asks for the token.
  says           connect (2026-07-22)

Scheduler
  kind          slurm
  project       always needed
  must be said  nodes, time
  says          guide (2025-04-11)

Compute nodes and the internet
  internet  reached by a proxy only
  proxy     http://proxy.ccs.ornl.gov:3128
  says      proxy (2026-07-22)

Tools
  apptainer  1.3.4 (guide)

Files
  home     $HOME
  scratch  /lustre/orion/PROJECT/scratch/USER, 50 TB, cleaned after 90 days
  project  /lustre/orion/PROJECT/proj-shared
  says     data (2026-07-22)

Queues
  NAME   NODES  TIME  SHARING  ON EACH NODE  TOGETHER            CHARGE       SAYS
  batch  384    2 d   whole    cpu           4 running per user  1 node-hour  guide
  gpu    8      2 d   whole    k80           1 running per user  1 node-hour  guide
  batch: time by nodes: 1-16 nodes 2 d, 17-64 nodes 1 d 12 h, 65-384 nodes 3 h
  batch: Besides running jobs, 4 more are considered.
  gpu: time by nodes: 1-2 nodes 2 d, 3-8 nodes 6 h

Nodes
  cpu  32 cores, 256 GiB of memory, nominally, 704 of them (guide)
  k80  28 cores, 1 TiB of memory, nominally, 2 K80, 9 of them (guide)

In doubt
  -  One table of the guide sets no limit on running jobs while a project has not overspent.

Sources
  connect  the centre, 2026-07-22: https://docs.olcf.ornl.gov/connecting/index.html
  guide    the centre, 2025-04-11: https://docs.olcf.ornl.gov/systems/andes_user_guide.html
  proxy    the centre, 2026-07-22: olcf/olcf-user-docs: software/analytics/jax.rst
  data     the centre, 2026-07-22: https://docs.olcf.ornl.gov/data/index.html
""")


@pytest.mark.parametrize("name", catalogue.names())
def test_every_system_can_be_shown_for_people_and_as_json(name: str, type_in: Type) -> None:
    typed = type_in("system", "show", name)
    assert (typed.code, typed.err) == (0, "")
    for source in catalogue.find_in_catalogue(name).sources:
        assert source.date in typed.out
        assert (source.link or source.file) in typed.out
    shown = json.loads(type_in("system", "show", name, "--json").out)
    assert [queue["name"] for queue in shown["queues"]] == [q.name for q in catalogue.find_in_catalogue(name).queues]


def test_an_unknown_system_is_refused_and_the_nearest_suggested(type_in: Type) -> None:
    typed = type_in("system", "show", "expense")
    assert (typed.code, typed.out) == (1, "")
    assert typed.err == (
        "error: There is no system expense.\n\nhint: `sublet system list` shows the systems. Did you mean expanse?\n"
    )


def test_a_check_shows_every_part_with_the_flag_that_changes_it(type_in: Type) -> None:
    words = ("--queue", "compute", "--nodes", "40", "--cores", "4", "--memory", "64GiB", "--time", "3d", "--jobs", "50")
    typed = type_in("system", "check", "expanse", *words)
    assert typed.code == 1
    assert aged(typed.out) == snapshot("""\
      WHAT     WANTED    FROM     LIMIT                                     CHANGED BY
ok    queue    compute   you      compute, ind-compute, shared, ind-share…  --queue
NO    project  not said  default  needed                                    --project
NO    nodes    40        you      up to 32                                  --nodes
note  cores    4         you      128 on each node                          --cores
ok    memory   64GiB     you      256GiB on each node, nominally            --memory
ok    gpus     0         default  none                                      --gpus
NO    time     3 d       you      up to 2 d                                 --time
note  jobs     50        you      32 running, 64 submitted                  --jobs
ok    option   none      default  -                                         --option

NO: project: expanse runs nothing without a project to charge.
    possible: --project NAME

NO: nodes: compute takes jobs of 32 nodes at most.
    possible: --nodes 32

note: cores: compute gives whole nodes: the job takes all 128 cores of each, not 4.
    possible: --cores 128

NO: time: compute lets jobs of 40 nodes run for 2 d at most.
    possible: --time 2d

note: jobs: compute runs 32 jobs of one group at a time; the others wait.
    possible: --jobs 32

It would be refused.
For its whole time each job costs 2880 node-hours, 368640 core-hours: 368640 SU.
The limits of compute are from expanse101 of 2024-06-19. Looked at AGO.
""")


def test_a_check_that_finds_nothing_is_a_success(type_in: Type) -> None:
    words = ("--queue", "shared", "--cores", "16", "--memory", "32GiB", "--time", "2h", "--project", "abc")
    typed = type_in("system", "check", "expanse", *words)
    assert typed.code == 0
    assert aged(typed.out) == snapshot("""\
    WHAT     WANTED  FROM     LIMIT                                     CHANGED BY
ok  queue    shared  you      compute, ind-compute, shared, ind-share…  --queue
ok  project  abc     you      needed                                    --project
ok  nodes    1       default  up to 1                                   --nodes
ok  cores    16      you      128 on each node                          --cores
ok  memory   32GiB   you      256GiB on each node, nominally            --memory
ok  gpus     0       default  none                                      --gpus
ok  time     2 h     you      up to 2 d                                 --time
ok  jobs     1       default  4096 running, 4096 submitted              --jobs
ok  option   none    default  -                                         --option

Nothing that is known speaks against it.
For its whole time it costs 32 core-hours: 32 SU of abc.
The limits of shared are from expanse101 of 2024-06-19. Looked at AGO.
""")
    assert type_in("system", "check", "expanse", *words, "--quiet").out == ""


def test_a_check_as_json_has_all_findings(type_in: Type) -> None:
    typed = type_in("system", "check", "stampede3", "--queue", "skx", "--time", "1h", "--option=--mem=8G", "--json")
    said = json.loads(typed.out)
    assert (typed.code, said["refused"], said["system"]) == (1, True, "stampede3")
    assert said["findings"][-1] == snapshot(
        {
            "state": "error",
            "field": "option",
            "flag": "--option",
            "wanted": "--mem=8G",
            "limit": "not --mem, --gres, --gpus-per-task, --nodelist, --array",
            "message": "stampede3 refuses --mem.",
            "nearest": "leave it out",
            "source": "you",
        }
    )


def test_a_check_reads_a_request_and_options_are_put_over_it(type_in: Type) -> None:
    Path("job.yaml").write_text("run: sim\ncores: 200\ntime: 1h\n")
    words = ("system", "check", "expanse", "job.yaml", "--queue", "compute", "--project", "abc", "--quiet")
    typed = type_in(*words)
    assert (typed.code, typed.out) == (
        1,
        "cores: No node of compute has 200 cores; they have 128. --cores is for each node."
        " If 200 in all were meant, they take 2 nodes.\n",
    )
    assert type_in(*words, "--cores", "128").code == 0
    assert type_in(*words[:3], "-", *words[4:], stdin="run: sim\ncores: 4\ntime: 1h\n").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time", "90"), "90 is not a length of time."),
        (("--nodes", "0"), "0 is not a count."),
        (("--memory", "8"), "8 is not an amount of memory."),
        (("--cores", "-1"), "-1 is not a count."),
    ],
)
def test_amounts_that_are_none_are_refused(words: tuple[str, ...], said: str, type_in: Type) -> None:
    typed = type_in("system", "check", "expanse", *words)
    assert typed.code == 2
    assert said in typed.err


def test_a_system_of_the_catalogue_is_added_as_ones_own_and_removed(type_in: Type) -> None:
    typed = type_in("system", "add", "expanse", "--user", "alice", "--project", "abc", "--queue", "shared")
    file = Path(os.environ["SUBLET_HOME"], "systems", "expanse.yaml")
    assert (typed.code, typed.out) == (0, f"expanse is added: {file}\n")
    assert file.read_text() == "like: expanse\nuser: alice\nproject: abc\nqueue: shared\n"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    shown = type_in("system", "show", "expanse").out
    assert "your own   user, project, queue\n" in shown
    assert "  user           alice\n" in shown
    checked = type_in("system", "check", "expanse", "--cores", "4", "--time", "1h")
    assert checked.code == 0
    assert "ok  project  abc" in checked.out
    assert type_in("system", "remove", "expanse").out == "expanse is removed.\n"
    assert "your own" not in type_in("system", "show", "expanse").out


def test_a_scheduler_that_there_is_no_platform_for_is_refused_with_those_that_there_are(type_in: Type) -> None:
    typed = type_in("system", "add", "mine", "--host", "a.example.org", "--scheduler", "pbx")
    assert (typed.code, typed.out) == (2, "")
    assert typed.err.startswith("error: There is no scheduler pbx; there are ")
    assert "gridengine, htcondor" in typed.err
    assert type_in("system", "show", "mine").code == 1


def test_a_system_that_the_catalogue_lacks_needs_a_host(type_in: Type) -> None:
    typed = type_in("system", "add", "mine")
    assert (typed.code, typed.err.splitlines()[0]) == (
        2,
        "error: mine is not in the catalogue: give --host, or --like and a system that it is like.",
    )
    added = type_in("system", "add", "mine", "--host", "a.example.org", "--port", "2222", "--json")
    said = json.loads(added.out)
    assert (said["hosts"], said["port"], said["scheduler"]) == (["a.example.org"], 2222, "slurm")


def test_a_system_that_nobody_signs_in_to_has_the_settings_of_its_platform(type_in: Type) -> None:
    words = ("--set", "namespace=alice", "--set", "tools=[python3, papermill]", "--set", "cores=8")
    added = type_in("system", "add", "lab", "--scheduler", "kubernetes", *words)
    file = Path(os.environ["SUBLET_HOME"], "systems", "lab.yaml")
    assert (added.code, added.out) == (0, f"lab is added: {file}\n")
    platforms, broken = systems_of(Settings(home=Path(os.environ["SUBLET_HOME"])))
    wanted = {"kind": "kubernetes", "namespace": "alice", "tools": ["python3", "papermill"], "cores": 8}
    assert (platforms, broken) == ({"lab": wanted}, {})
    odd = type_in("system", "add", "other", "--scheduler", "kubernetes", "--set", "namespace")
    assert "--set takes a setting and its value, as namespace=alice" in odd.err
    unread = type_in("system", "add", "other", "--scheduler", "kubernetes", "--set", "tools=[a")
    assert (unread.code, "a value can't be read" in unread.err) == (2, True)
    assert type_in("system", "show", "lab").code == 0
    assert "Nobody signs in to lab over SSH" in type_in("system", "login", "lab").err


def test_a_system_can_be_like_another_with_its_own_host(type_in: Type) -> None:
    assert type_in("system", "add", "twin", "--like", "lumi", "--host", "twin.example.org", "-q").out == "twin\n"
    said = json.loads(type_in("system", "show", "twin", "--json").out)
    assert (said["hosts"], said["like"], said["title"]) == (["twin.example.org"], "lumi", "LUMI")
    assert said["own"] == ["like", "login.hosts"]


def test_a_queue_that_is_not_there_is_refused_and_nothing_is_kept(type_in: Type) -> None:
    typed = type_in("system", "add", "lumi", "--queue", "smal")
    assert typed.code == 2
    assert "There is no queue smal in lumi; there are standard, standard-g," in typed.err
    assert "own" not in type_in("system", "list").out.split()


def test_adding_twice_is_refused(type_in: Type) -> None:
    type_in("system", "add", "lumi")
    typed = type_in("system", "add", "lumi", "--user", "bob")
    assert typed.code == 2
    assert typed.err.startswith("error: The system lumi already exists.\n\nhint: Edit ")


def test_a_broken_file_is_told_with_its_line_and_does_not_hide_the_others(type_in: Type) -> None:
    type_in("system", "add", "lumi")
    file = Path(os.environ["SUBLET_HOME"], "systems", "lumi.yaml")
    file.with_name("Odd Name.yaml").write_text("like: lumi\n")
    file.write_text("like: lumi\nlogin:\n  hots: [x]\n")
    typed = type_in("system", "show", "lumi")
    assert typed.code == 2
    assert f"{file}, line 3: login.hots: there is no such field here; did you mean hosts?" in typed.err
    listed = type_in("system", "list")
    assert listed.code == 0
    assert "expanse" in listed.out
    assert f"note: The file of the system lumi can't be read: {file}, line 3" in listed.err
    assert "note: A system can't be called 'Odd Name'." in listed.err


def test_only_own_systems_can_be_removed(type_in: Type) -> None:
    typed = type_in("system", "remove", "lumi")
    assert (typed.code, typed.err.splitlines()[0]) == (
        1,
        "error: lumi is in the catalogue; only your own can be removed.",
    )


@pytest.mark.parametrize(
    ("command", "begun", "names"), [("show", "isa", ["isambard-ai", "isambard3"]), ("remove", "", [])]
)
def test_names_are_completed(command: str, begun: str, names: list[str], type_in: Type) -> None:
    assert type_in().code == 0  # a home of its own
    found = group.commands[command]
    with found.make_context(command, ["x"]) as context:
        assert [item.value for item in found.params[0].shell_complete(context, begun)] == names


def test_no_service_is_started_for_systems(type_in: Type) -> None:
    type_in("system", "list")
    type_in("system", "add", "lumi")
    assert sorted(os.listdir(os.environ["SUBLET_HOME"])) == ["systems"]


def test_completion_and_help_of_systems_load_no_yaml_and_nothing_loads_pydantic() -> None:
    for words, heavy in (
        (["system", "--help"], {"yaml", "pydantic", "http.client"}),
        (["system", "list"], {"pydantic", "http.client"}),
    ):
        code = f"import sys; from sublet.cli.app import run; run({words!r}); print(*sys.modules, file=sys.stderr)"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert not heavy & set(said.stderr.split())


def test_an_ask_can_be_shown_whole_before_anyone_is_asked(type_in: Type, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("run: python sim.py\ncores: 16\ntime: 2h\n")
    words = ("--platform", "anvil", "--project", "abc", "--memory", "8GiB", str(tmp_path / "job.yaml"))
    typed = type_in("ask", "--show", *words)
    assert typed.code == 0
    rows = {line.split()[1]: line for line in typed.out.splitlines() if line[:4].strip() in ("ok", "note")}
    assert "job.yaml" in rows["cores"]
    assert "you" in rows["memory"]
    assert "the default of anvil" in rows["queue"]
    assert "--jobs" not in typed.out
    assert "it costs 32 core-hours: 32 SU of abc." in typed.out
    assert type_in("ask", "--show", "--cores", "2", "--", "true").code == 2
    shown = json.loads(type_in("ask", "--show", "--json", *words).out)
    assert (shown["refused"], shown["cost"]["charged"]) == (False, 32)
