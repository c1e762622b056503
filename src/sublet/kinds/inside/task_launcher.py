"""Starts a command once per task of a job, as MPI programs expect it. Travels with the job: standard library only.

In a Slurm job srun starts the tasks, elsewhere mpirun; without either, each task is started separately. One task per
node is started by the platform's own script, if it has one (`SUBLET_ON_NODES`).

A task's rank and peers reach the program inside the container by variables, by the descriptor or socket of the process
manager (PMI2, PMIx), and by one shared memory for all tasks of the session on a node.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping

from sublet.kinds.inside.container_images import say
from sublet.kinds.inside.container_tools import Plan

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - where every MPI library looks for it
MPI_VARIABLES = ("PMI_", "PMI2_", "PMIX_", "OMPI_", "PRTE_", "HYDRA_", "MPIR_", "MPICH_", "I_MPI_")
# Slurm's variables that describe the job and its steps; not who submitted it, from where, and who pays.
SLURM_VARIABLES = (
    *("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NNODES", "SLURM_GTIDS"),
    *("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NUM_NODES", "SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_STEP"),
    *("SLURM_TASKS_PER_NODE", "SLURM_CPUS", "SLURM_JOB_CPUS", "SLURM_MEM_PER", "SLURM_GPUS", "SLURM_ARRAY"),
    *("SLURMD_NODENAME", "SLURM_MPI_TYPE", "SLURM_PMIX", "SLURM_DISTRIBUTION", "SLURM_CLUSTER_NAME"),
)
RANKS = ("SUBLET_TASK", "SLURM_PROCID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SUBLET_NODE_NUMBER")
ON_NODES = "SUBLET_ON_NODES"  # the script that starts a program on each of a job's nodes
FOLDERS = ("PMIX_SERVER_TMPDIR", "PMIX_SYSTEM_TMPDIR", "OMPI_FILE_LOCATION")  # where a PMIx server keeps its files
PMI_DESCRIPTOR = "PMI_FD"
# A process can't read another's memory across containers, so large messages go through shared memory instead.
WITHOUT_SINGLE_COPY = {
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",  # Open MPI 4
    "OMPI_MCA_smsc": "^cma,xpmem,knem",  # Open MPI 5
    "MPIR_CVAR_CH4_CMA_ENABLE": "0",  # MPICH
    "MV2_SMP_USE_CMA": "0",  # MVAPICH
    "I_MPI_SHM_CMA": "0",  # Intel MPI
}
# Tasks that can't share memory are told to behave as if each was alone on its node.
WITHOUT_SHARED_MEMORY = {
    "OMPI_MCA_btl": "^vader,sm,smcuda",
    "MPIR_CVAR_NOLOCAL": "1",
    "MV2_USE_SHARED_MEM": "0",
    "I_MPI_FABRICS": "ofi",
}
# Open MPI's mpirun refuses to run as root, and more tasks than it counts cores; the job has its own limits.
FOR_MPIRUN = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
# Prints which process manager the image's MPI library uses; nothing if that isn't known.
ASK_IMAGE = r"""
case $(mpirun --version 2>&1 || mpiexec --version 2>&1) in
*"Open MPI"* | *OpenRTE* | *PRRTE*) echo pmix; exit ;;
*HYDRA* | *Intel* | *MVAPICH*) echo pmi2; exit ;;
esac
for folder in $(IFS=:; echo $LD_LIBRARY_PATH) /usr/lib/*-linux-gnu /usr/lib64 /usr/lib /usr/local/lib /usr/local/lib64 \
    /usr/lib64/*/lib /opt/*/lib /opt/*/*/lib; do
    for file in "$folder"/libopen-pal.so* "$folder"/libmpi.so.40*; do [ -e "$file" ] && { echo pmix; exit; }; done
    for file in "$folder"/libmpich.so* "$folder"/libmpi.so.12*; do [ -e "$file" ] && { echo pmi2; exit; }; done
done
"""


def find_launcher() -> str:
    """Return the path of srun or mpirun, which start tasks here; empty if there is neither."""
    if "SLURM_JOB_ID" in os.environ and (srun := shutil.which("srun")):
        return srun
    return shutil.which("mpirun") or ""


def list_process_managers(srun: str) -> set[str]:
    """Return which of `pmix` and `pmi2` this Slurm offers."""
    answer = subprocess.run([srun, "--mpi=list"], capture_output=True, text=True, check=False)
    words = set((answer.stdout + answer.stderr).replace(",", " ").split())
    return {"pmix", "pmi2"} & words


def choose_process_manager(plan: Plan, available: set[str], image_speaks: str) -> str:
    """Return the plan's process manager, or the one of the image's MPI library, or PMI2, which most images support."""
    if wanted := plan.get("mpi"):
        return str(wanted)
    if image_speaks in available:
        return image_speaks
    return next((name for name in ("pmi2", "pmix") if name in available), "")


def make_words(plan: Plan, launcher: str, process_manager: str) -> list[str]:
    """Return the launcher's command line, up to the command that it starts for each task."""
    tasks = int(plan["tasks"])
    if os.path.basename(launcher) != "srun":
        return [launcher, "-n", str(tasks)]
    nodes = min(int(os.environ.get("SUBLET_NODES") or 1), tasks)
    words = [launcher, f"--ntasks={tasks}", f"--nodes={nodes}", f"--ntasks-per-node={math.ceil(tasks / nodes)}"]
    words += ["--unbuffered", "--cpu-bind=none", "--kill-on-bad-exit=1"]
    return [*words, *([f"--mpi={process_manager}"] if process_manager else [])]


def start_tasks(plan: Plan, words: list[str]) -> list[subprocess.Popen[bytes]]:
    """Start the processes of all tasks, or of their launcher."""
    program = [sys.executable, plan["program"], "task"]
    nothing = subprocess.DEVNULL
    if words:
        first = {"SUBLET_FIRST_NODE": os.environ.get("SLURMD_NODENAME") or os.uname().nodename}
        return [subprocess.Popen([*words, *program], stdin=nothing, env={**os.environ, **FOR_MPIRUN, **first})]
    if plan["tasks"] > 1:
        say(f"there is no srun or mpirun here: {plan['tasks']} tasks are started, each for itself")
    ranks = [{**os.environ, "SUBLET_TASK": str(number)} for number in range(plan["tasks"])]
    return [subprocess.Popen(program, stdin=nothing, env=rank) for rank in ranks]


def describe_task(plan: Plan, variables: Mapping[str, str]) -> dict[str, str]:
    """Return a task's variables about itself and its peers; without Slurm, as on a single node of it."""
    rank = next((variables[name] for name in RANKS if variables.get(name, "").isdigit()), "0")
    tasks = str(plan["tasks"])
    alone = {"SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_NODEID": "0", "SLURM_NTASKS": tasks}
    alone |= {"SLURM_NPROCS": tasks, "SLURM_NNODES": "1", "SLURM_JOB_NUM_NODES": "1"}
    own = {"SUBLET_TASK": rank, "SUBLET_TASKS": tasks}
    if plan.get("each_node"):
        first = variables.get("SUBLET_FIRST_NODE", "localhost")
        own |= {"SUBLET_NODES": tasks, "SUBLET_NODE_NUMBER": rank, "SUBLET_FIRST_NODE": first}
        alone |= {"SLURM_LOCALID": "0", "SLURM_NODEID": rank, "SLURM_NNODES": tasks, "SLURM_JOB_NUM_NODES": tasks}
    return {**alone, **describe_job(variables), **own}


def describe_job(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that describe the job and the MPI process; all others stay outside."""
    prefixes = (*MPI_VARIABLES, *SLURM_VARIABLES)
    return {name: value for name, value in variables.items() if name.startswith(prefixes)}


def find_descriptors(variables: Mapping[str, str]) -> tuple[int, ...]:
    """Return the open descriptor by which srun or mpirun talks to this task, which the program must inherit."""
    number = variables.get(PMI_DESCRIPTOR, "")
    if not number.isdigit() or int(number) < 3:
        return ()
    try:
        os.fstat(int(number))
    except OSError:
        return ()
    return (int(number),)


def find_folders(variables: Mapping[str, str]) -> list[str]:
    """Return the PMIx server's folders, which a container must see at the same paths."""
    named = {os.path.realpath(variables[name]) for name in FOLDERS if variables.get(name)}
    return sorted(folder for folder in named if os.path.isdir(folder) and folder not in ("/", "/tmp", "/var/tmp"))  # noqa: S108


@contextlib.contextmanager
def share_memory(name: str, root: str = SHARED_MEMORY) -> Iterator[str]:
    """Provide a folder in this node's memory for all tasks of a step, removed by the last.

    Empty if that isn't possible.
    """
    if not os.path.isdir(root) or not os.access(root, os.W_OK):
        yield ""
        return
    sweep_memory(root)
    folder = os.path.join(root, f"sublet-{os.getuid()}-{name}")
    mark = enter_memory(folder)
    try:
        yield os.path.join(folder, "shm")
    finally:
        with contextlib.suppress(OSError):
            os.unlink(mark)
            os.rmdir(os.path.dirname(mark))  # fails while another task is there
            shutil.rmtree(folder, ignore_errors=True)


def enter_memory(folder: str) -> str:
    """Make the folder and leave this process's mark; an earlier step's last task may be removing it meanwhile."""
    mark = os.path.join(folder, "users", f"{os.getpid()}.{read_birth(os.getpid())}")
    while True:
        with contextlib.suppress(FileNotFoundError):
            for name in ("", "users", "shm"):
                os.makedirs(os.path.join(folder, name), mode=0o700, exist_ok=True)
            with open(mark, "w", encoding="ascii"):
                return mark


def sweep_memory(root: str) -> None:
    """Remove our shared memory whose tasks were all killed."""
    for name in os.listdir(root):
        folder = os.path.join(root, name)
        if name.startswith(f"sublet-{os.getuid()}-") and os.path.isdir(folder) and is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def is_abandoned(folder: str) -> bool:
    """Whether tasks have left marks there, and none of them is alive."""
    try:
        marks = os.listdir(os.path.join(folder, "users"))
    except OSError:
        return False  # it is being made, or removed
    return bool(marks) and not any(read_birth(mark.partition(".")[0]) == mark.partition(".")[2] for mark in marks)


def read_birth(pid: int | str) -> str:
    """Return when a process began, in the kernel's clock ticks; empty if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
