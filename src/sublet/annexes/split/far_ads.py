"""The ads of jobs and slots, as the far half reads and writes them. Sent with the far half."""

from __future__ import annotations

import os
import re

from sublet.annexes.split.far_programs import check_program, find_stdin

THREADS = (
    *("CUBACORES", "GOMAXPROCS", "JULIA_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS"),
    *("OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "PYTHON_CPU_COUNT", "ROOT_MAX_THREADS"),
    *("TF_LOOP_PARALLEL_ITERATIONS", "TF_NUM_THREADS"),
)  # the variables in which HTCondor tells jobs on any node how many cores they have
GPUS = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")  # the same for GPUs
CONTAINED_GPUS = "NVIDIA_VISIBLE_DEVICES"  # the same for GPUs in containers
NO_GPUS = "10000"  # a number that no GPU has, so that a job without GPUs leaves those of others alone
OURS = {
    *("iwd", "shouldtransferfiles", "whentotransferoutput", "transferinput", "transferoutput", "transferexecutable"),
    *("owner", "user", "ntdomain", "userlog", "ulog", "dagmanjoblog", "outputdestination", "transferoutputremaps"),
    *("cmd", "in", "out", "err", "containerimage"),
    *("deferraltime", "deferralwindow", "deferralpreptime", "deferraloffset"),  # the near starter has waited
}  # attributes of a job's ad that are replaced for this node


def ad_here(ad: str, sandbox: str, owner: str, machine: str = "") -> str:
    """Return a job's ad for the starter on this node: in this sandbox, with nothing to transfer.

    `machine` is the ad of its slot. Raise NotStartable if its program or its input can't be used.
    """

    def value(name: str, otherwise: str) -> str:
        match = re.search(r"(?im)^" + name + r'\s*=\s*"(.*)"\s*$', ad)
        return match.group(1) if match else otherwise

    def inside(path: str) -> str:
        return os.path.join(sandbox, os.path.basename(path.rstrip("/")))

    lines = [line for line in ad.splitlines() if line.split("=", 1)[0].strip().lower() not in OURS]
    command = value("Cmd", "")
    for here in (inside(command), sandbox + "/condor_exec.exe"):
        if os.path.isfile(here):
            os.chmod(here, 0o700)
            command = here
            break
    image = value("ContainerImage", "")
    if not image:
        check_program(os.path.join(sandbox, command))
    values = {
        "Iwd": sandbox,
        "ShouldTransferFiles": "NO",
        "Owner": owner,
        "User": owner + "@far.local",
        "Cmd": command,
        "Out": "_condor_stdout",
        "Err": "_condor_stdout" if shares_output(value("Out", ""), value("Err", "")) else "_condor_stderr",
        "In": find_stdin(value("In", "/dev/null"), sandbox),
    }
    given_environment = value("Environment", "")
    more = variables_of(machine)
    added = [name + "=" + setting for name, setting in more.items() if not is_set(name, given_environment)]
    if added:
        lines = [line for line in lines if line.split("=", 1)[0].strip().lower() != "environment"]
        values["Environment"] = " ".join([given_environment, *added]).strip()
    if image:
        values["ContainerImage"] = inside(image) if os.path.exists(inside(image)) else image
    lines += ['{} = "{}"'.format(*pair) for pair in values.items()]
    return "\n".join(lines) + "\n"


def has_exit(ad: str) -> bool:
    """Whether an ad that a starter left says how its job ended; one that was never started has no such number."""
    return re.search(r"(?im)^(ExitCode|ExitSignal)\s*=\s*\d", ad) is not None


def shares_output(out: str, err: str) -> bool:
    """Whether a job writes stdout and stderr to one file."""
    return out == err and out not in ("", "/dev/null")


def variables_of(machine: str) -> dict[str, str]:
    """Return the variables by which HTCondor tells jobs on any node what their slot has."""
    if not machine:
        return {}
    cores = find_assigned_cores(machine)
    threads = dict.fromkeys(THREADS, cores) if cores else {}
    gpus = find_assigned_gpus(machine)
    return dict(threads, **dict.fromkeys(GPUS, gpus or NO_GPUS), **{CONTAINED_GPUS: gpus or "none"})


def is_set(name: str, environment: str) -> bool:
    """Whether a job's own environment sets a variable, which then has precedence."""
    return re.search(r"(^|[\s'\"])" + name + "=", environment) is not None


def find_assigned_cores(machine: str) -> str:
    """Return the number of cores of a slot."""
    match = re.search(r"(?im)^Cpus\s*=\s*(\d+)\s*$", machine)
    return match.group(1) if match else ""


def find_assigned_gpus(machine: str) -> str:
    """Return the numbers of a slot's GPUs, in the form that CUDA expects."""
    match = re.search(r'(?im)^AssignedGPUs\s*=\s*"(.*)"\s*$', machine)
    words = re.split(r"[,\s]+", match.group(1)) if match else []
    return ",".join(word[4:] if re.match(r"CUDA\d+$", word) else word for word in words if word)
