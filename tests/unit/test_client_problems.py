"""What a command says of answers that are not the service's own."""

from __future__ import annotations

import pytest

from sublet.client.problems import raise_for
from sublet.kernel.errors import NotFound, SubletError


@pytest.mark.parametrize(("status", "words"), [(502, "not running"), (503, "not available"), (504, "in time")])
def test_a_proxy_before_a_service_that_is_down_is_told_from_the_service(status: int, words: str) -> None:
    with pytest.raises(SubletError, match=words) as refused:
        raise_for(status, b"<html><h1>Bad Gateway</h1><p>nginx</p></html>")
    assert "the service's operator" in refused.value.advice


def test_an_address_that_the_service_lacks_is_told_in_words_of_those_who_type() -> None:
    answer = b'{"code": "not-found", "detail": "Not Found.", "hint": "/openapi.json lists all endpoints."}'
    with pytest.raises(NotFound, match="The service has nothing of that name") as refused:
        raise_for(404, answer)
    assert "only those of sessions and files can have a slash" in refused.value.advice
    assert "older than this client" in refused.value.advice


def test_what_the_service_says_itself_stays() -> None:
    with pytest.raises(SubletError, match="It is full") as refused:
        raise_for(503, b'{"detail": "It is full.", "hint": "Make room."}')
    assert refused.value.advice == "Make room."
