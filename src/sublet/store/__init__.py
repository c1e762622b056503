"""The only SQL: what outlives a process, on SQLite or PostgreSQL."""

from sublet.store.bookings import Books
from sublet.store.claims import Claim
from sublet.store.sessions import Page
from sublet.store.store import Store
from sublet.store.tokens import Token
from sublet.store.tx import Tx

__all__ = ["Books", "Claim", "Page", "Store", "Token", "Tx"]
