"""Slurm's own configuration of a site."""

import os
import subprocess
from pathlib import Path

from testbed.plan import Plan, Skip

GPUS = 2
TMP = 500  # MB of disk that each node says it has
SLURMDBD = """\
AuthType=auth/munge
DbdHost=ctl
SlurmUser=slurm
LogFile=/var/log/site/slurmdbd.log
PidFile=/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
"""


def slurm_version(base: str) -> str:
    """The version of a base's Slurm, such as 22.05.8."""
    inside = ["chroot", base] if base != "/" else []
    try:
        done = subprocess.run([*inside, "/usr/sbin/slurmctld", "-V"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise Skip(f"no slurmctld in {base} (scripts/system-packages installs what a site needs)") from None
    return done.stdout.split()[1]


def write_slurm(plan: Plan, layer: Path) -> None:
    """Write slurm.conf and what goes with it, munge's key, and the directories of the daemons."""
    etc = layer / "etc/slurm"
    etc.mkdir(parents=True)
    (etc / "slurm.conf").write_text(slurm_conf(plan))
    (etc / "gres.conf").write_text(f"NodeName={plan.computes[-1]} Name=gpu File=/dev/nvidia[0-{GPUS - 1}]\n")
    (etc / "cgroup.conf").write_text(cgroup_conf(plan))
    if plan.accounts:
        (etc / "slurmdbd.conf").write_text(SLURMDBD)
        (etc / "slurmdbd.conf").chmod(0o600)
        give(plan, etc / "slurmdbd.conf", "slurm")
    state = layer / "var/spool/slurmctld"
    state.mkdir(parents=True)
    give(plan, state, "slurm")
    (layer / "var/spool/slurmd").mkdir()
    key = layer / "etc/munge/munge.key"
    key.parent.mkdir(mode=0o700)
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    give(plan, key.parent, "munge")
    give(plan, key, "munge")
    (plan.root / "log").chmod(0o777)


def give(plan: Plan, path: Path, name: str) -> None:
    """Give a file to a user of the base."""
    for line in (Path(plan.base) / "etc/passwd").read_text().splitlines():
        user, _, uid, gid, *_ = line.split(":")
        if user == name:
            os.chown(path, int(uid), int(gid))


def settings(plan: Plan) -> dict[str, str]:
    """The settings that are not about nodes and partitions; the plan's own lines have the last word."""
    chosen = {
        "ClusterName": plan.name,
        "SlurmctldHost": "ctl",
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        "StateSaveLocation": "/var/spool/slurmctld",
        "SlurmdSpoolDir": "/var/spool/slurmd",
        "SlurmctldPidFile": "/run/slurmctld.pid",
        "SlurmdPidFile": "/run/slurmd.pid",
        "SlurmctldLogFile": "/var/log/site/slurmctld.log",
        "SlurmdLogFile": "/var/log/site/slurmd-%n.log",
        "ProctrackType": "proctrack/cgroup" if plan.cgroups else "proctrack/linuxproc",
        "TaskPlugin": "task/cgroup" if plan.cgroups else "task/none",
        "SlurmdParameters": "config_overrides",  # nodes may be larger than this machine
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "GresTypes": "gpu",
        # Without batch_sched_delay=0 a job waits three seconds, without bf_interval=1 nothing is planned for thirty.
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1,"
        "bf_resolution=60,bf_window=2880,bf_continue",
        "PriorityType": "priority/multifactor",
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": "2",
        "MinJobAge": "60",
        "KillWait": "2",
        "ReturnToService": "2",
        "EnforcePartLimits": "NO" if plan.lax else "ALL",
        # A dead node is down after both of these, and some; less would fail jobs on a machine that is merely busy.
        "SlurmdTimeout": "20",
        "MessageTimeout": "10",
        "MpiDefault": "none",
        "PrologFlags": "Alloc",
        "Licenses": "matlab:4",
    }
    if plan.accounts:
        chosen |= {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": "ctl",
            "AccountingStorageEnforce": "associations,limits,qos",
            "AccountingStorageTRES": "gres/gpu",
            "AccountingStoreFlags": "job_comment",
            "PriorityWeightAge": "1000",
            "PriorityWeightQOS": "10000",
            "PriorityWeightFairshare": "1000",
        }
    for line in plan.slurm:
        key, _, value = line.partition("=")
        chosen[key.strip()] = value.strip()
    return chosen


def slurm_conf(plan: Plan) -> str:
    """The whole of slurm.conf."""
    last = plan.computes[-1]
    whole = f"c[1-{max(1, plan.nodes - 1)}]"
    shape = f"CPUs={plan.cpus} Boards=1 Sockets=1 CoresPerSocket={plan.cpus} ThreadsPerCore=1 RealMemory={plan.memory}"
    shape += f" TmpDisk={TMP}"
    lines = [f"{key}={value}" for key, value in settings(plan).items()]
    if plan.nodes > 1:
        lines.append(f"NodeName={whole} {shape} State=UNKNOWN")
    lines += [
        f"NodeName={last} {shape} Gres=gpu:{GPUS} State=UNKNOWN",
        f"PartitionName=compute Nodes={whole} Default=YES MaxNodes={max(1, plan.nodes - 2)} MaxTime=01:00:00"
        " DefaultTime=00:10:00 OverSubscribe=EXCLUSIVE",
        f"PartitionName=shared Nodes={last} MaxNodes=1 MaxTime=04:00:00 DefaultTime=00:10:00 DefMemPerCPU=256"
        f" MaxCPUsPerNode={max(1, plan.cpus - 2)}",
        f"PartitionName=debug Nodes={whole} MaxNodes=1 MaxTime=00:05:00 DefaultTime=00:01:00 PriorityTier=10",
        f"PartitionName=gpu Nodes={last} MaxNodes=1 MaxTime=02:00:00 DefaultTime=00:10:00 DefMemPerCPU=256",
    ]
    return "\n".join(lines) + "\n"


def cgroup_conf(plan: Plan) -> str:
    """Limits by cgroups where they are wanted, else as little as this version of Slurm lets us."""
    version = tuple(int(part) for part in plan.version.split(".")[:2])
    if version < (21, 8):  # it knows cgroups of version 1 only
        return "CgroupAutomount=no\n" + ("ConstrainRAMSpace=yes\n" if plan.cgroups else "")
    if plan.cgroups:
        return "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainRAMSpace=yes\n"
    if version < (23, 11):
        return "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
    return "CgroupPlugin=disabled\n"
