"""What a session used in energy and carbon: measured where that can be, else by the price list."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.energy import count_energy
from sublet.booking.model.intensity import read_intensity
from sublet.booking.model.offer import Offer
from sublet.booking.model.phases import Phase
from sublet.booking.model.prices import Prices, Tariff
from sublet.booking.model.session import End, EndKind, Session, Usage
from sublet.booking.model.shape import Shape
from sublet.platforms.local.shim.energy import EnergyMeter

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
GRID = read_intensity("12,100\n13,300\n")
OFFER = Offer("here", "exec", NOON, NOON, 4 * HOUR, ("n1",), Shape(8, 1))
SESSION = Session("s", "o", "me", "sim", "command", Phase.RUNNING, OFFER, NOON, NOON, NOON)


def count(end: End, tariff: Tariff) -> Usage:
    counted = count_energy(SESSION, end, NOON, NOON + 2 * HOUR, tariff).usage
    assert counted is not None
    return counted


def test_by_the_price_list_it_is_what_its_cores_used_in_the_time_that_it_ran_not_that_it_was_allowed() -> None:
    used = count(End(EndKind.EXITED, 0, usage=Usage(wall=7200)), Tariff(Prices(core_hour_energy=0.01), GRID))
    assert (used.energy, used.energy_source) == (0.16, "settings")
    assert used.carbon == pytest.approx(0.16 * 200), "by the hours in which it ran"


def test_a_moment_uses_little_and_not_nothing() -> None:
    used = count(
        End(EndKind.EXITED, 0, usage=Usage(wall=0.7)), Tariff(Prices(core_hour_energy=0.012, core_hour_carbon=4))
    )
    assert used.energy == pytest.approx(8 * 0.012 * 0.7 / 3600, rel=1e-3)
    assert used.carbon == pytest.approx(8 * 4 * 0.7 / 3600, rel=1e-3)


def test_what_was_measured_stands_and_its_carbon_follows_the_grid() -> None:
    end = End(EndKind.EXITED, 0, usage=Usage(wall=7200, energy=0.5, energy_source="measured"))
    used = count(end, Tariff(Prices(core_hour_energy=0.01), GRID))
    assert (used.energy, used.energy_source, used.carbon) == (0.5, "measured", pytest.approx(100))


def test_where_nothing_is_known_nothing_is_said() -> None:
    end = End(EndKind.EXITED, 0)
    assert count_energy(SESSION, end, NOON, NOON + HOUR, Tariff(Prices())) == end
    assert count_energy(replace(SESSION), end, None, NOON, Tariff(Prices(core_hour_energy=1))) == end


def make_zone(folder: Path, name: str, count: int) -> Path:
    zone = folder / name
    zone.mkdir()
    (zone / "energy_uj").write_text(f"{count}\n")
    (zone / "max_energy_range_uj").write_text("1000000000\n")
    return zone / "energy_uj"


def test_counters_of_the_kernel_are_shared_by_processor_time_and_may_begin_anew(tmp_path: Path) -> None:
    first, inner = make_zone(tmp_path, "intel-rapl:0", 900_000_000), make_zone(tmp_path, "intel-rapl:0:0", 0)
    meter = EnergyMeter(str(tmp_path))
    first.write_text("260000000\n")  # 100 J to the end of the counter, and 260 J after it
    inner.write_text("999000000\n")  # a part of the first: not counted again
    share = meter.share(1e9)  # more than all processors can have worked: all of it
    assert share["energy_source"] == "measured"
    assert share["energy"] == pytest.approx(360 / 3_600_000)


def test_without_counters_that_can_be_read_nothing_is_measured(tmp_path: Path) -> None:
    assert EnergyMeter(str(tmp_path / "none")).share(1.0) == {}
    (tmp_path / "intel-rapl:0").mkdir()
    assert EnergyMeter(str(tmp_path)).share(1.0) == {}
