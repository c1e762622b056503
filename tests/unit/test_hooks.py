"""What a hook is told of, how it is signed, and how often it is tried."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sublet.booking.model.events import Event, EventKind
from sublet.kernel.calling import wrong_with
from sublet.kernel.errors import BadRequest
from sublet.notices.messages import is_signed, letter, signature
from sublet.notices.model.hooks import STATES, TRIES, WAITS, WORDS, Hook, next_try, words_of

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def hook(*events: str) -> Hook:
    return Hook("h", "ann", "", "https://example.org/x", "", events, NOW, NOW + timedelta(days=1))


def test_a_word_means_kinds_of_events_and_no_word_means_each_change_of_state() -> None:
    assert hook("ended").kinds == {"session.completed", "session.failed", "session.cancelled"}
    assert hook().kinds == {kind for word in STATES for kind in WORDS[word]}
    assert "session.rejected" not in hook().kinds
    assert "session.app-revoked" in hook().kinds


def test_words_are_known_and_come_once() -> None:
    assert words_of([" Ended", "failed", "ended", ""]) == ("ended", "failed")
    with pytest.raises(BadRequest, match="exploded"):
        words_of(["exploded"])


def test_what_fails_is_tried_ever_less_often_over_hours() -> None:
    assert list(WAITS) == sorted(WAITS)
    assert sum(WAITS, timedelta()) > timedelta(hours=12)
    assert [next_try(tries, NOW) - NOW for tries in range(1, TRIES)] == list(WAITS)


def test_a_signature_holds_for_its_body_its_secret_and_a_while() -> None:
    header = signature("s3cret", NOW, b"body")
    assert is_signed("s3cret", header, b"body", NOW + timedelta(minutes=1))
    for secret, body, now in (
        ("other", b"body", NOW),
        ("s3cret", b"bodY", NOW),
        ("s3cret", b"body", NOW.replace(day=17)),
    ):
        assert not is_signed(secret, header, body, now)
    for nonsense in ("", "t=,v1=", "t=x,v1=y", "v1=00", f"t={int(NOW.timestamp())}"):
        assert not is_signed("s3cret", nonsense, b"body", NOW)


@pytest.mark.parametrize(
    "address",
    [
        "ftp://example.org",
        "https://",
        "nonsense",
        "https://u:p@example.org/",
        "https://example.org:99999/",
        "file:///x",
    ],
)
def test_what_is_no_plain_address_is_refused(address: str) -> None:
    assert wrong_with(address, private=True)


def test_plain_http_is_for_private_networks_alone() -> None:
    assert wrong_with("http://example.org/", private=False) == "it has to be https"
    assert not wrong_with("http://example.org/", private=True)
    assert not wrong_with("https://example.org/a?b=c", private=False)


def test_a_name_can_not_add_lines_to_a_letter() -> None:
    event = Event(1, NOW, "0\nBcc: a@example.org", "ann", EventKind.FAILED, "", "FAILED")
    subject, _ = letter(hook(), event, None)
    assert "\n" not in subject


def test_a_letter_says_why_an_app_was_revoked() -> None:
    event = Event(1, NOW, "0123456789", "ann", EventKind.APP_REVOKED, "its app a@1 was revoked:\nit leaks", "RUNNING")
    subject, text = letter(hook(), event, None)
    assert subject == "[sublet] 01234567: notified that its app was revoked"
    assert "its app a@1 was revoked: it leaks\n" in text
