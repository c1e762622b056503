"""Podman's containers run where control groups are read-only, as in most containers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sublet.kinds.inside.container_runner import find_program, has_both_versions

READ_ONLY = """
for point in $(awk '$3 ~ /^cgroup/ { print $2 }' /proc/self/mounts); do mount -o remount,bind,ro "$point"; done
exec "$@"
"""
CHOOSE = """
from sublet.kinds.inside.container_runner import choose_runtime, hide_version_2
hide_version_2({"tool": "podman"})
print(*choose_runtime())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another machine of this one")
def test_where_groups_of_both_versions_are_read_only_a_container_stays_in_its_jobs_own() -> None:
    if not has_both_versions() or not (crun := find_program("crun")):
        pytest.skip("this machine has control groups of one version, or no crun")
    namespace = ["unshare", "--mount", "--propagation", "private"]
    words = [*namespace, "sh", "-c", READ_ONLY, "sh", sys.executable, "-c", CHOOSE]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [crun, "True"]
    assert has_both_versions(), "only the job's own processes don't see them"
