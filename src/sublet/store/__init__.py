"""One transaction over the nouns of all subjects, on SQLite or PostgreSQL; each subject has its own SQL."""

from sublet.booking.store.bookings import Books
from sublet.booking.store.claims import Claim
from sublet.booking.store.sessions import Page
from sublet.people.store.tokens import Token
from sublet.store.store import Store
from sublet.store.tx import Tx

__all__ = ["Books", "Claim", "Page", "Store", "Token", "Tx"]
