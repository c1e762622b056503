"""Parses XML answers of servers safely."""

from __future__ import annotations

from xml.etree import ElementTree

MOST_TAGS = 4_000_000  # more than lists of files have: each element takes far more memory than text
DECLARATIONS = b"<!DOCTYPE"  # no honest answer has one; it may be an XML bomb


def read_xml(text: bytes) -> ElementTree.Element:
    """Parse an answer; raise ParseError if it isn't XML, is too long, or has a DOCTYPE."""
    if text.count(b"<") > MOST_TAGS:
        raise ElementTree.ParseError("it is too long")
    if DECLARATIONS in text:
        raise ElementTree.ParseError("it has declarations")
    return ElementTree.fromstring(text)  # noqa: S314 - nothing is declared in it
