"""Agrees at the provider of the tests, as in a browser: `sublet login … 2>&1 | python -m tests.agree PERSON`."""

from __future__ import annotations

import re
import sys

import httpx2

from tests.openid_server import PASSWORD

CODE = re.compile(r"\n  (http\S+)\n.*\n  ([0-9A-Z-]{8,9})\n.*Waiting", re.DOTALL)  # the page, and what to type there


def agree_in_browser(person: str, page: str, code: str) -> None:
    """What someone does in a browser: sign in, type the code, agree."""
    with httpx2.Client(trust_env=False, timeout=30, follow_redirects=True) as browser:
        answer = browser.get(page)
        for form in ({"username": person, "password": PASSWORD}, {"user_code": code}, {"action": "accept"}):
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', answer.text)
            assert token, answer.text
            answer = browser.post(answer.url, data={"csrfmiddlewaretoken": token[1], **form})
        assert (answer.status_code, answer.text) == (200, "authorized")


def main(person: str) -> None:
    """Pass on what a terminal shows, and agree to the code in it."""
    seen, is_agreed = "", False
    for line in sys.stdin:
        sys.stdout.write(line)
        sys.stdout.flush()
        seen += line
        if not is_agreed and (shown := CODE.search(seen)):
            agree_in_browser(person, shown[1], shown[2])
            is_agreed = True


if __name__ == "__main__":
    main(sys.argv[1])
