"""The outbox: requests to other brokers and the offers that they hold, until nothing is held any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from sqlalchemy import delete, insert, or_, select, update

from sublet.booking.model.brokers import BrokerAsk, BrokerOffer
from sublet.booking.model.phases import ACTIVE, Phase
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import broker_asks, broker_offers, sessions
from sublet.kernel.db.sql import Row, Sql, bind, plain

A, F, S = broker_asks.c, broker_offers.c, sessions.c
STANDS = [phase.value for phase in sorted({*ACTIVE, Phase.OFFERED})]
ADD_ASK = insert(broker_asks)
REMOVE_ASK = delete(broker_asks).where(A.key == bind("of_key"))
PUT_OFF_ASK = update(broker_asks).where(A.key == bind("of_key")).values(due=bind("at"), tries=bind("count"))
ANSWERED = update(broker_asks).where(A.key == bind("of_key")).values(due=bind("at"), offerset=bind("there"))
ASKS = (
    select(A.key, A.broker, A.person, A.document, A.via, A.due, A.created, A.offerset, A.tries)
    .where(A.due <= bind("now"))
    .order_by(A.due)
    .limit(bind("most"))
)
ADD_OFFER = insert(broker_offers)
LEFT_OVER = (  # offers whose session here can't be accepted any more, and isn't active
    select(F.session, F.broker, F.person, F.url, F.offerset, F.expires, F.tries, S.phase)
    .select_from(broker_offers.outerjoin(sessions, S.id == F.session))
    .where(F.due <= bind("now"), or_(S.id.is_(None), S.phase.not_in(STANDS)))
    .order_by(F.due)
    .limit(bind("most"))
)
OF_SET = select(F.url).where(F.offerset == bind("of_set"))
STANDING = (
    select(F.offerset)
    .select_from(broker_offers.join(sessions, S.id == F.session))
    .where(S.phase.in_(STANDS))
    .distinct()
)
REMOVE_OFFER = delete(broker_offers).where(F.session == bind("of_session"))
PUT_OFF_OFFER = update(broker_offers).where(F.session == bind("of_session")).values(due=bind("at"), tries=bind("count"))


class BrokerCalls:
    """Open requests and offers at other brokers, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def add_asks(self, asks: Iterable[BrokerAsk]) -> None:
        """Record requests that are about to be sent."""
        rows = [
            {
                "key": ask.key,
                "broker": plain(ask.broker),
                "person": plain(ask.person),
                "document": plain(ask.document),
                "via": " ".join(ask.via),
                "offerset": plain(ask.offerset),
                "created": micros(ask.created),
                "due": micros(ask.due),
                "tries": ask.tries,
            }
            for ask in asks
        ]
        self._sql.change_many(ADD_ASK, rows)

    def list_asks(self, now: datetime, limit: int) -> list[BrokerAsk]:
        """List the requests whose outcome was not recorded in time."""
        return [_ask(row) for row in self._sql.rows(ASKS, {"now": micros(now), "most": limit})]

    def settle_ask(self, key: str) -> None:
        """Remove a request whose outcome is recorded."""
        self._sql.change(REMOVE_ASK, {"of_key": key})

    def settle_asks(self, keys: Iterable[str]) -> None:
        """Remove requests whose outcome is recorded."""
        self._sql.change_many(REMOVE_ASK, [{"of_key": key} for key in keys])

    def note_answer(self, key: str, offerset: str, due: datetime) -> None:
        """Record where a request's answer is, because a part of it was not passed on."""
        self._sql.change(ANSWERED, {"of_key": key, "there": plain(offerset), "at": micros(due)})

    def put_off_ask(self, ask: BrokerAsk, due: datetime) -> None:
        """Postpone a request that could not be settled, and count the try."""
        self._sql.change(PUT_OFF_ASK, {"of_key": ask.key, "at": micros(due), "count": ask.tries + 1})

    def add_offers(self, offers: Sequence[BrokerOffer], now: datetime) -> None:
        """Record the offers that other brokers hold for sessions here."""
        rows = [
            {
                "session": offer.session,
                "broker": plain(offer.broker),
                "person": plain(offer.person),
                "url": plain(offer.url),
                "offerset": plain(offer.offerset),
                "expires": micros(offer.expires),
                "due": micros(now),
                "tries": 0,
            }
            for offer in offers
        ]
        self._sql.change_many(ADD_OFFER, rows)

    def list_left_over(self, now: datetime, limit: int) -> list[BrokerOffer]:
        """List the offers that nobody here needs any more."""
        return [_offer(row) for row in self._sql.rows(LEFT_OVER, {"now": micros(now), "most": limit})]

    def find_needed(self, offersets: Collection[str]) -> frozenset[str]:
        """Return which of these offer sets of other brokers are still needed here."""
        rows = self._sql.select(STANDING.where(F.offerset.in_([plain(each) for each in offersets])))
        return frozenset(row[0] for row in rows)

    def list_passed_on(self, offerset: str) -> frozenset[str]:
        """Return the addresses of the sessions of another broker's offer set that were passed on."""
        return frozenset(row[0] for row in self._sql.rows(OF_SET, {"of_set": plain(offerset)}))

    def settle_offers(self, offers: Iterable[BrokerOffer]) -> None:
        """Remove offers for which nothing is held any more."""
        self._sql.change_many(REMOVE_OFFER, [{"of_session": offer.session} for offer in offers])

    def put_off_offers(self, offers: Iterable[tuple[BrokerOffer, datetime]]) -> None:
        """Postpone offers that could not be given back, and count the try."""
        rows = [{"of_session": offer.session, "at": micros(due), "count": offer.tries + 1} for offer, due in offers]
        self._sql.change_many(PUT_OFF_OFFER, rows)


def _ask(row: Row) -> BrokerAsk:
    key, broker, person, document, via, due, created, offerset, tries = row
    return BrokerAsk(
        key, broker, person, document, tuple(via.split()), moment(due), moment(created), offerset, int(tries)
    )


def _offer(row: Row) -> BrokerOffer:
    session, broker, person, url, offerset, expires, tries, phase = row
    known = None if phase is None else Phase(phase)
    return BrokerOffer(session, broker, person, url, offerset, moment(expires), int(tries), known)
