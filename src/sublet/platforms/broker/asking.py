"""Requests, offers and changes at another broker: each can be repeated, and its result is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from sublet.booking.model.offer import Answer, Quote, Reason
from sublet.kernel.errors import PlatformBroken, PlatformRefused
from sublet.platforms.broker.fields import (
    Document,
    UnreadableField,
    find_running_block,
    read_length,
    read_maps,
    read_meta,
    read_phase,
    read_quotes,
)
from sublet.platforms.broker.older import write_longer, write_older, write_update
from sublet.platforms.broker.reading import OfferReader, read_id
from sublet.platforms.broker.records import TakenOffer
from sublet.platforms.broker.states import GOES_ON, OFFERED, OVER
from sublet.platforms.broker.wire import PROOF, REQUEST, VIA, BrokerReply, BrokerWire
from sublet.platforms.brokering import PassedAnswer, PassedRequest

ANSWERED = (200, 201, 303)
NO_SUCH_ADDRESS = (404, 405)
REFUSED = "urn:broker-refused"
LONGEST_PROOF = 80


@dataclass
class BrokerAsks:
    """The calls to one broker."""

    wire: BrokerWire
    is_older: bool = False  # it uses a schema before 1.0

    async def ask(self, request: PassedRequest, now: datetime) -> PassedAnswer:
        """Pass a request on, and read the answer."""
        reply = await self._post(request)
        if reply.status not in ANSWERED:
            why = f"{self.wire.name} refused the request: {reply.words}"
            return PassedAnswer(Answer(reasons=(Reason(REFUSED, "request", why, platform=self.wire.name),)))
        document = await self._find_document(reply, request.person)
        if not document:
            raise PlatformBroken(platform=self.wire.name, why="its answer is no document that can be read")
        reader = OfferReader(
            self.wire.name,
            self.wire.url,
            now,
            reply.find_skew(now),
            request.duration,
            request.is_understood,
            reply.headers.get(PROOF, "")[:LONGEST_PROOF],
        )
        answer, dropped = reader.read(document)
        return PassedAnswer(answer, self._locate_set(document), dropped)

    async def _post(self, request: PassedRequest) -> BrokerReply:
        headers = {
            "idempotency-key": request.key,
            VIA: ", ".join(request.via),
            "prefer": f"wait={request.within.total_seconds():g}",
        }
        headers |= {REQUEST: request.request_id} if request.request_id else {}
        if not self.is_older:
            reply = await self.wire.send("/requests", request.person, request.text, headers)
            if reply.status not in NO_SUCH_ADDRESS:
                return reply
            self.is_older = True
        return await self.wire.post("/offersets", request.person, write_older(request.document), headers)

    async def _find_document(self, reply: BrokerReply, person: str) -> Document:
        """Return the offer set: from the answer, or from where its location leads, if that is at the same broker."""
        if document := reply.document:
            return document
        id = reply.headers.get("location", "").rstrip("/").rpartition("/")[2]
        try:
            there = f"/offersets/{read_id({'uuid': id})}"
        except UnreadableField:
            return {}
        return (await self.wire.get(there, person)).document

    def _locate_set(self, document: Document) -> str:
        try:
            return f"{self.wire.url}/offersets/{read_id(document)}"
        except UnreadableField:
            return ""

    async def accept(self, taken: TakenOffer, key: str) -> None:
        """Accept an offer; raise PlatformRefused if it isn't accepted afterwards, whatever the broker says."""
        reply = await self._move(taken, "ACCEPTED", {"idempotency-key": key})
        document: Document | None = reply.document if reply.status in ANSWERED else None
        if document is None or read_phase(document) not in GOES_ON | OVER:
            document = await self.look(taken)
        phase = read_phase(document) if document else ""
        if phase in GOES_ON | OVER:
            return
        if reply.status in ANSWERED:
            why = f"it said that it accepts, and the offer there is {phase or 'gone'}"
        else:
            why = reply.words
        raise PlatformRefused(platform=self.wire.name, why=why, hint="Ask again: the offer is no longer there.")

    async def lengthen(self, taken: TakenOffer, duration: timedelta) -> tuple[Quote, ...]:
        """Extend a session to this duration by the missing time, so that repeating is safe; return its new price."""
        document = await self.look(taken)
        if document is None:
            raise PlatformRefused(platform=self.wire.name, why="the session is no longer there")
        try:
            lacks = ceil((duration - read_length(find_running_block(document), "duration")).total_seconds())
        except UnreadableField as error:
            raise PlatformRefused(platform=self.wire.name, why=f"it can't be extended there: {error}") from error
        if lacks > 0:
            update = write_longer(lacks, older=self.is_older)
            reply = await self.wire.post(taken.path, taken.person, update)
            if reply.status not in ANSWERED:
                raise PlatformRefused(platform=self.wire.name, why=reply.words)
            document = reply.document
        return read_quotes(document, "costs")

    async def give_up(self, taken: TakenOffer) -> None:
        """Reject an offer that isn't accepted, or cancel a session that hasn't ended."""
        document = await self.look(taken)
        phase = read_phase(document) if document else ""
        if phase == OFFERED:
            await self._move(taken, "REJECTED")
        elif phase in GOES_ON:
            await self._move(taken, "CANCELLED")

    async def give_up_set(self, offerset: str, person: str, again: PassedRequest | None, keep: frozenset[str]) -> None:
        """Reject all offers of a set except those to keep."""
        if offerset:
            path = f"/offersets/{offerset.rpartition('/')[2]}"
            if self.wire.is_sublet and not keep:
                await self.wire.delete(f"/v1{path}", person)
                return
            reply = await self.wire.get(path, person)
        elif again and self.wire.is_sublet:
            reply = await self._post(again)  # the same key returns the earlier request, if that came through
        else:
            return
        document = await self._find_document(reply, person) if reply.status in ANSWERED else {}
        for item in read_maps(document, "offers"):
            url = f"{self.wire.url}/sessions/{read_meta(item, 'uuid')}"
            if read_phase(item) == OFFERED and url not in keep:
                await self.give_up(TakenOffer(url, person))

    async def look(self, taken: TakenOffer) -> Document | None:
        """Return the session's or offer's current document; None if there is none."""
        reply = await self.wire.get(taken.path, taken.person)
        if reply.status in (404, 410):
            return None
        if reply.status != 200:
            raise PlatformRefused(platform=self.wire.name, why=reply.words)
        return reply.document

    async def _move(self, taken: TakenOffer, phase: str, headers: Mapping[str, str] | None = None) -> BrokerReply:
        reply = await self.wire.post(taken.path, taken.person, write_update(phase, older=self.is_older), headers)
        if reply.status == 400 and not self.is_older:  # after a restart, the broker's schema isn't known yet
            older = await self.wire.post(taken.path, taken.person, write_update(phase, older=True), headers)
            return older if older.status in ANSWERED else reply
        return reply
