"""What transfers took is remembered, on both databases, bounded; and tells how long the next takes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sublet.booking.model.phases import Phase
from sublet.data.model.throughput import KEPT_EACH, RECENT, Hop, Transfer
from sublet.store.store import Store
from tests.contract.services import ME, ask, over, serving

NOW = datetime(2026, 11, 15, 20, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_of_each_road_only_the_newest_transfers_are_kept(store: Store) -> None:
    for number in range(KEPT_EACH + 5):
        transfer = Transfer(NOW + number * SECOND, "a.org", "here", Hop.HERE, 1000 + number, 2.5)
        store.write_sync(lambda tx, one=transfer: tx.transfers.add(one))
    other = Transfer(NOW - RECENT, "", "far", Hop.SENT, 7, 0.25)
    store.write_sync(lambda tx: tx.transfers.add(other))
    kept = store.read_sync(lambda tx: tx.transfers.since(NOW - 2 * RECENT, 1000))
    assert [transfer.bytes for transfer in kept] == [*range(1000 + KEPT_EACH + 4, 1004, -1), 7]
    assert kept[-1] == other
    assert len(store.read_sync(lambda tx: tx.transfers.since(NOW - 2 * RECENT, 3))) == 3
    assert store.write_sync(lambda tx: tx.transfers.forget(NOW)) == 1


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.anyio
async def test_the_next_estimate_is_by_what_was_measured_and_stands_beside_what_it_took(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    for name in ("cube.fits", "next.fits"):
        (tmp_path / "web" / name).write_bytes(bytes(20_000_000))
    platforms = {"here": {"kind": "local"}}
    with web_server(tmp_path / "web") as host:
        async with serving(tmp_path / "home", platforms=platforms) as service:
            data = f"http://{host}/cube.fits"
            first = await ask(service, run=["true"], data=data, time="1m")
            staging = first.offers[0].offer.staging
            assert (staging.samples, staging.time.high, first.offers[0].offer.prepare) == (0, 2 * SECOND, 2 * SECOND)
            taken = await service.sessions.accept(first.offers[0].id, ME)
            done = await over(service, taken.id)
            assert done.phase is Phase.COMPLETED
            assert done.staged is not None
            [transfer] = await service.transfers.list_recent()
            assert (transfer.source, transfer.system, transfer.hop) == (host, "here", Hop.HERE)
            assert transfer.bytes == 20_000_000
            assert transfer.seconds <= done.staged.total_seconds()
            _, sentences = await service.explanations.explain(taken.id, ME)
            assert any("Staging: predicted 1 s (under 1 s to 2 s), a guess, took" in words for words in sentences)
            assert (await ask(service, run=["true"], data=data, time="1m")).offers[0].offer.staging.there == (
                "cube.fits",
            )
            again = (await ask(service, run=["true"], data=f"http://{host}/next.fits", time="1m")).offers[0].offer
            assert again.staging.samples == 1
            assert abs(again.staging.time.likely.total_seconds() - transfer.seconds) < 0.01
            assert again.staging.time.high == 2 * again.staging.time.likely
