"""What every ring of tests shares."""

import gc
import os
import signal
from functools import cache
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.access_points import ap_site, person  # noqa: F401 - fixtures for every ring
from tests.git_server import git  # noqa: F401 - a fixture for every ring
from tests.kubernetes_fixtures import cluster, jupyter_image, namespace  # noqa: F401 - fixtures for every ring
from tests.loaded_images import loaded_images_removed  # noqa: F401 - after every ring
from tests.openstack_fixtures import cloud, debian, project  # noqa: F401 - the same
from tests.postgres import postgres  # noqa: F401 - a fixture for every ring
from tests.sites import fresh_site, new_site, site, swept  # noqa: F401 - fixtures for every ring

gc.disable()  # until all tests are collected: what is imported stays
# A busy machine is slow, and that is no failure. The same examples each time: who looks for others says so.
settings.register_profile(
    "steady", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("searching", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
# A traceback in the log of a test is plain: to draw a frame around each took a fifth of a ring's time.
PLAIN = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], PLAIN])
os.environ.pop("PYTHONUNBUFFERED", None)  # what people's terminals don't have may hide what they see
os.environ.setdefault("SUBLET_ANSWER_WITHIN", "30s")  # a site on a busy machine is slow, and that is no failure


@pytest.fixture(autouse=True)
def usual_umask() -> None:
    """What a test before, or a program that it ran in this process, set is not this test's."""
    os.umask(0o022)


def pytest_configure() -> None:
    """Let signals be signals for what tests start, also when they run by nohup or in the background of a shell."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # unlike being ignored, this is not handed on


@pytest.fixture
def anyio_backend() -> str:
    """The service runs on asyncio alone."""
    return "asyncio"


RINGS = ("real", "docs", "browser", "cli", "contract", "api", "unit")
# The files that take the longest, in this order.
WAIT = ("split", "annex", "benchmarks", "pilot", "jobs", "access_point", "guest", "slurm_faults")
LONG = ("docs/*guides*", "browser/*", *(f"real/*{word}*" for word in WAIT), "api/*schemathesis*")
# One worker has the files that share one Chromium, PostgreSQL or Kubernetes, or one site with `ap` for a short while.
TOGETHER = {
    "tests/browser/": "browser",
    "tests/contract/test_store_": "database",
    "tests/contract/test_service_access.py": "database",
    "tests/contract/test_service_pledges.py": "database",
    "tests/contract/test_service_track.py": "database",
    "tests/real/test_shared_work.py": "database",
    "tests/real/test_jobs": "jobs",
    "tests/real/test_pilot_pull.py": "ap",
    "tests/real/test_access_point.py": "ap",
    "tests/real/test_ap_machine.py": "ap",
    "tests/engines/test_kubernetes": "kubernetes",
    "tests/docs/test_guides_engines.py": "kubernetes",
    "tests/engines/test_side_by_side.py": "kubernetes",
}


class Together(LoadFileScheduling):
    """The tests of a file are one worker's, and so are those of files that share what takes long to start."""

    def _split_scope(self, nodeid: str) -> str:
        shared = (TOGETHER[files] for files in TOGETHER if nodeid.startswith(files))
        return next(shared, super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """How tests are given to workers."""
    return Together(config, log)


def pytest_collection_finish() -> None:
    """What is there by now stays to the end: nobody needs to look for garbage in it."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes the longest, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: _turn(item.path))  # a stable sort: within a file the order stays


@cache
def _turn(file: Path) -> tuple[int, int, str]:
    ring = next((number for number, ring in enumerate(RINGS) if ring in file.parts), len(RINGS))
    long = next((number for number, files in enumerate(LONG) if file.match(files)), len(LONG))
    return long, ring, str(file)
