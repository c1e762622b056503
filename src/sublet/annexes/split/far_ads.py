"""The ads of jobs and slots, as the far half reads and writes them. Sent with the far half."""

from __future__ import annotations

import os
import re

OURS = {
    *("iwd", "shouldtransferfiles", "whentotransferoutput", "transferinput", "transferoutput", "transferexecutable"),
    *("owner", "user", "ntdomain", "userlog", "ulog", "dagmanjoblog", "outputdestination", "transferoutputremaps"),
    *("cmd", "in", "out", "err", "containerimage"),
}  # attributes of a job's ad that are replaced for this node


def ad_here(ad: str, sandbox: str, owner: str, gpus: str = "", cores: str = "") -> str:
    """Return a job's ad for the starter on this node: in this sandbox, with nothing to transfer."""

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
    image, given = value("ContainerImage", ""), value("In", "/dev/null")
    values = {
        "Iwd": sandbox,
        "ShouldTransferFiles": "NO",
        "Owner": owner,
        "User": owner + "@far.local",
        "Cmd": command,
        "Out": "_condor_stdout",
        "Err": "_condor_stderr",
        "In": inside(given) if os.path.exists(inside(given)) else "/dev/null",
    }
    given_environment = value("Environment", "")
    more = {"CUDA_VISIBLE_DEVICES": gpus, "OMP_NUM_THREADS": cores}
    added = [name + "=" + setting for name, setting in more.items() if setting and not is_set(name, given_environment)]
    if added:
        lines = [line for line in lines if line.split("=", 1)[0].strip().lower() != "environment"]
        values["Environment"] = " ".join([given_environment, *added]).strip()
    if image:
        values["ContainerImage"] = inside(image) if os.path.exists(inside(image)) else image
    lines += ['{} = "{}"'.format(*pair) for pair in values.items()]
    return "\n".join(lines) + "\n"


def is_set(name: str, environment: str) -> bool:
    """Whether a job's own environment sets a variable, which then has precedence."""
    return re.search(r"(^|[\s'\"])" + name + "=", environment) is not None


def find_assigned_cores(machine: str) -> str:
    """Return the number of cores of a slot, which HTCondor tells jobs on any node."""
    match = re.search(r"(?im)^Cpus\s*=\s*(\d+)\s*$", machine)
    return match.group(1) if match else ""


def find_assigned_gpus(machine: str) -> str:
    """Return the numbers of a slot's GPUs, in the form that CUDA expects."""
    match = re.search(r'(?im)^AssignedGPUs\s*=\s*"(.*)"\s*$', machine)
    words = re.split(r"[,\s]+", match.group(1)) if match else []
    return ",".join(word[4:] if re.match(r"CUDA\d+$", word) else word for word in words if word)
