"""The bundle for a node without network, sent through the spool: the shell script of any pilot, and the far half."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sublet.annexes.pilots.bundle import OLDEST, PilotPlan, far, seconds, tar
from sublet.annexes.split.travel import FAR_HALF, program
from sublet.kinds.pilot import assign_variables, script
from sublet.platforms.htcondor.configuration import STRICT, places, write_lines

DOMAIN = "far.sublet"
# A job's scratch directory is its sandbox, as on any node; the starter here has another, and knows no slot.
IN_SANDBOX = b"""#!/bin/sh
_CONDOR_SCRATCH_DIR=$PWD TMPDIR=$PWD TEMP=$PWD TMP=$PWD
_CONDOR_MACHINE_AD=${PWD%/*}/machine.ad
_CONDOR_SLOT=${PWD%/*}
_CONDOR_SLOT=${_CONDOR_SLOT##*/}
_CONDOR_SLOT=${_CONDOR_SLOT%%-*}
export _CONDOR_SCRATCH_DIR TMPDIR TEMP TMP _CONDOR_MACHINE_AD _CONDOR_SLOT
[ ! -x "${PWD%/*}/manifest" ] || "${PWD%/*}/manifest"
exec "$@"
"""


def far_bundle(plan: PilotPlan, lease: timedelta, release: str, tools: Sequence[str]) -> bytes:
    """Return the bundle, which has no secret of HTCondor; jobs continue for `lease` while the near side is silent."""
    values = {
        "carry": "spool",
        "lease": plan.lease,
        "number": plan.number,
        "lifetime": seconds(plan.lifetime),
        "margin": seconds(plan.margin),
        "oldest": OLDEST,
        "release": release.removeprefix("sha256:"),
        "tools": " ".join(tools),
    }
    settings = {"node": plan.number, "lease_id": plan.lease, "poll": 0.1, "lease": seconds(lease)}
    return tar(
        {
            "values": assign_variables(values),
            "ask.sh": script("ask"),
            "pilot.sh": far("pilot"),
            "condor_config": configuration().encode(),
            "far.py": program(FAR_HALF, settings),
            "in_sandbox": IN_SANDBOX,
        }
    )


def configuration() -> str:
    """Return the configuration of the starters on a node: each in its own directories, without network."""
    values = {
        **places(""),
        "LOCAL_DIR": "$ENV(SUBLET_OWN)",
        **STRICT,
        "NETWORK_INTERFACE": "127.0.0.1",
        "ENABLE_IPV6": "False",
        "USE_SHARED_PORT": "False",
        "DEFAULT_DOMAIN_NAME": DOMAIN,
        "UID_DOMAIN": DOMAIN,
        "FILESYSTEM_DOMAIN": DOMAIN,
        "ALLOW_WRITE": "",
        "ALLOW_READ": "",
        "STARTER_ALLOW_RUNAS_OWNER": "False",
        "STARTER_NESTED_SCRATCH": "False",
        "FILETRANSFER_PLUGINS": "",  # a job's sandbox is already complete
        "MOUNT_UNDER_SCRATCH": "",
        # A container finds its job's sandbox where the starter says that its scratch directory is.
        "SINGULARITY_BIND_EXPR": '"$ENV(SUBLET_SANDBOX):$(EXECUTE)/dir_$(PID)"',
    }
    return write_lines(values) + "include : $ENV(SUBLET_PILOT)/node.conf\n"
