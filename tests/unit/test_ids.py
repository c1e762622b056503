"""Ids come from a supply: none comes twice, in threads and in forked processes neither."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from sublet.kernel.ids import SUPPLY, draw_ids


def test_ids_are_uuids_and_none_comes_twice() -> None:
    with ThreadPoolExecutor(8) as threads:
        drawn = [id for ids in threads.map(draw_ids, [5] * SUPPLY) for id in ids]
    assert len(set(drawn)) == len(drawn) == 5 * SUPPLY
    assert {UUID(id).version for id in drawn} == {4}


def test_more_ids_than_the_supply_holds() -> None:
    assert len(set(draw_ids(3 * SUPPLY))) == 3 * SUPPLY


def test_a_forked_process_draws_other_ids() -> None:
    draw_ids(1)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, draw_ids(1)[0].encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100).decode() not in draw_ids(SUPPLY)
    os.close(reading)
    os.close(writing)
