"""One job's stock starter on a node: what it is given, and why it could not run a job. Sent with the far half."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import Any

from sublet.annexes.split.far_ads import ad_here
from sublet.annexes.split.far_results import OWN_ADS, find_manifest
from sublet.annexes.split.spool_files import read

NO_RESULT = "the starter ended without the job's result"
IMAGE_TEST = re.compile("singularity output was (.*)")  # in the log of a starter that tests an image before its job
TOLD = 1000  # characters of such an output that are told
# HTCondor's manifest of a job has the variables that its program is given, which only the node knows.
MANIFEST = """#!{python} -IS
import os, re
with open("/proc/self/environ", errors="surrogateescape") as file:  # Python adds to its own
    given = [word for word in file.read().split("\\0") if "=" in word]
words = [re.sub(r"([ \\t\\r\\n]+)", r"'\\1'", word.replace("'", "'" * 4)) for word in sorted(given)]
os.makedirs({place!r}, exist_ok=True)
with open({place!r} + "/environment", "w", errors="surrogateescape") as file:
    file.write(" ".join(words) + "\\n")
"""


def start(home: str, directory: str, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start a stock starter in its own directories, since of two starters that share LOCK one dies."""
    with open(directory + "/job.ad") as file:
        ad = file.read()
    with open(directory + "/in.ad", "w") as file:
        machine = read(directory + "/machine.ad") or ""
        file.write(ad_here(ad, directory + "/sandbox", settings["lease_id"], machine))
    for part in ("log", "execute", "spool", "lock", "run"):
        os.makedirs(directory + "/own/" + part)
    words = [settings["starter"], "-f", "-t", "-local-name", "far"]
    words += ["-job-input-ad", directory + "/in.ad", "-job-output-ad", directory + "/out.ad"]
    own = dict(os.environ, CONDOR_CONFIG=home + "/condor_config", SUBLET_OWN=directory + "/own")
    own["SUBLET_SANDBOX"] = directory + "/sandbox"
    if not is_contained(ad):
        own["_CONDOR_USER_JOB_WRAPPER"] = home + "/in_sandbox"
    write_manifest(ad, directory)
    with open(directory + "/starter.log", "wb") as log:
        return subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, cwd=home, env=own)


def is_contained(ad: str) -> bool:
    """Whether a job runs in a container."""
    return re.search(r"(?im)^ContainerImage\s*=", ad) is not None


def show_ads(directory: str) -> None:
    """Put the ads of a job and its slot into its sandbox, where programs look for them on any node."""
    for name in OWN_ADS:
        if os.path.exists(directory + "/" + name[1:]):
            shutil.copyfile(directory + "/" + name[1:], directory + "/sandbox/" + name)


def write_manifest(ad: str, directory: str) -> None:
    """Write the program that adds the job's environment to its manifest, if the job wants one (far_bundle.py)."""
    manifest = find_manifest(ad)
    if not manifest:
        return
    place = os.path.join(directory, "sandbox", manifest)
    with open(directory + "/manifest", "w") as file:
        file.write(MANIFEST.format(python=sys.executable, place=place))
    os.chmod(directory + "/manifest", 0o700)


def describe_image_failure(directory: str) -> str:
    """Say why a job's image could not be run, which is no fault of the node; empty if that wasn't the reason."""
    if not is_contained(read(directory + "/job.ad") or ""):
        return ""
    outputs = IMAGE_TEST.findall(read(directory + "/starter.log") or "")
    words = outputs[-1].strip().replace(directory + "/sandbox/", "")[:TOLD] if outputs else ""
    return "its image could not be run: " + words if words else ""
