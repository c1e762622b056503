"""What the tests on real components share."""

from __future__ import annotations

from tests.real.workers import worker  # noqa: F401 - a fixture
