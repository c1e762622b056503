"""Fixtures, settings and scheduling for all tests."""

import gc
import os
import signal
from functools import cache
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.access_points import ap_site, person  # noqa: F401 - fixtures for every ring
from tests.examples import SEARCHING
from tests.git_server import git  # noqa: F401 - a fixture for every ring
from tests.kubernetes_fixtures import cluster, jupyter_image, namespace  # noqa: F401 - fixtures for every ring
from tests.loaded_images import loaded_images_removed  # noqa: F401 - after every ring
from tests.openstack_fixtures import cloud, debian, project  # noqa: F401 - the same
from tests.postgres import postgres  # noqa: F401 - a fixture for every ring
from tests.sites import fresh_site, new_site, site, swept  # noqa: F401 - fixtures for every ring

gc.disable()  # while tests are collected: imported modules are never garbage
# No deadline: a slow machine is not a failure. The same examples each time, unless HYPOTHESIS_PROFILE=searching.
settings.register_profile(
    "steady", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("searching", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
if not SEARCHING:
    # Hypothesis also tries constants that it finds in our source. The examples would change with every commit, and each
    # worker would parse the whole source: a third of what collecting the tests took.
    providers._get_local_constants = lambda: providers._local_constants  # which are none yet
# Plain tracebacks in logs: structlog's framed ones took a fifth of a ring's time.
PLAIN = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], PLAIN])
os.environ.pop("PYTHONUNBUFFERED", None)  # users don't set it, and it would hide buffering problems
os.environ.setdefault("SUBLET_ANSWER_WITHIN", "30s")  # a site on a busy machine may be slow to answer


@pytest.fixture(autouse=True)
def usual_umask() -> None:
    """Reset the umask that an earlier test in this process may have changed."""
    os.umask(0o022)


def pytest_configure() -> None:
    """Stop ignoring SIGINT and SIGHUP (under `nohup` they are): processes that tests start would inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # unlike SIG_IGN, a handler is not inherited


@pytest.fixture
def anyio_backend() -> str:
    """The service runs on asyncio alone."""
    return "asyncio"


RINGS = ("real", "docs", "browser", "cli", "contract", "api", "unit")
# The slowest files, slowest first. They start first.
WAIT = ("split", "annex", "benchmarks", "pilot", "jobs", "access_point", "guest", "slurm_faults")
LONG = ("docs/*guides*", "browser/*", *(f"real/*{word}*" for word in WAIT), "api/*schemathesis*")
# Files with the same value run in the same worker, because they share a browser, database, cluster, site or trees.
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
    "tests/contract/test_texts_decide_nothing.py": "source",
    "tests/docs/test_rooms.py": "source",
    "tests/unit/test_class_names.py": "source",
    "tests/unit/test_streams.py": "source",
    "tests/unit/test_words.py": "source",
}


class Together(LoadFileScheduling):
    """Runs the tests of a file, and of files that share something slow to start, in the same worker."""

    def _split_scope(self, nodeid: str) -> str:
        shared = (TOGETHER[files] for files in TOGETHER if nodeid.startswith(files))
        return next(shared, super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Distribute tests to workers by `TOGETHER`."""
    return Together(config, log)


def pytest_collection_finish() -> None:
    """Turn garbage collection on, but exempt everything imported so far (it stays until the end)."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first, so that none of them runs alone at the end."""
    items.sort(key=lambda item: _turn(item.path))  # a stable sort: within a file the order stays


@cache
def _turn(file: Path) -> tuple[int, int, str]:
    ring = next((number for number, ring in enumerate(RINGS) if ring in file.parts), len(RINGS))
    long = next((number for number, files in enumerate(LONG) if file.match(files)), len(LONG))
    return long, ring, str(file)
