"""Pages for visitors of an interactive session: a waiting page, an error page, and a notice before the end.

They are served under the session's own address, where code in the session could change them, so they offer nothing but
a link to the session's page on the service itself.
"""

from __future__ import annotations

import html
from collections.abc import AsyncIterator, Mapping
from datetime import UTC
from importlib.resources import files

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sublet.booking.session_notices import SessionNotice
from sublet.kernel.errors import SubletError
from sublet.kernel.streams import closing

OWN = ".sublet/"  # below a session's path: answered by the service itself
NOTICE, SCRIPT = f"{OWN}notice", f"{OWN}notice.js"
LOOK_AGAIN = 2  # seconds
GUARDED = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'",
}
STYLE = """:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:38rem;margin:3rem auto;padding:0 1rem}
h1{font-size:1.4rem}progress{width:100%}"""
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">{refresh}
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title><style>{style}</style></head>
<body><main><h1>{title}</h1>{body}</main></body></html>"""


def is_navigation(request: Request) -> bool:
    """Whether a person will see the answer as a page, rather than a program, script or image tag."""
    wanted = request.headers.get("sec-fetch-dest", "document")
    return request.method == "GET" and wanted == "document" and "text/html" in request.headers.get("accept", "")


def can_be_told(headers: Headers | Mapping[str, str]) -> bool:
    """Whether our script can be added to a page: uncompressed HTML that allows scripts of its own host."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/html" or headers.get("content-encoding"):
        return False
    rules = [words.split() for words in headers.get("content-security-policy", "").lower().split(";")]
    named = {words[0]: words[1:] for words in rules if words}
    scripts = named.get("script-src", named.get("default-src"))
    return scripts is None or "'self'" in scripts or "*" in scripts


async def with_script(pieces: AsyncIterator[bytes], base: str) -> AsyncIterator[bytes]:
    """Yield an application's page and then our script tag, which browsers accept after the end of the page."""
    async with closing(pieces) as pieces:
        async for piece in pieces:
            yield piece
    yield f'<script src="{base}{SCRIPT}"></script>'.encode()


def answer_script() -> Response:
    """Return the script that shows the notice."""
    headers = {"cache-control": "private, max-age=300", "x-content-type-options": "nosniff"}
    script = files("sublet.web").joinpath("static", "notice.js").read_bytes()
    return Response(script, headers=headers, media_type="text/javascript")


def answer_notice(notice: SessionNotice) -> Response:
    """Return the notice as JSON, for the script."""
    ends = notice.ends.astimezone(UTC).isoformat(timespec="seconds") if notice.ends else ""
    document = {"ends": ends, "warned": notice.is_warned, "page": notice.page}
    return JSONResponse(document, headers={"cache-control": "no-store"})


def show_wait(notice: SessionNotice) -> Response:
    """Return the waiting page of a session that is being prepared; it reloads itself without a script."""
    sentences = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in notice.sentences)
    body = f"<p><progress></progress></p>{sentences}<p>This page leads there as soon as it is ready.</p>{_link(notice)}"
    refresh = f'<meta http-equiv="refresh" content="{LOOK_AGAIN}">'
    return _page(202, f"{notice.name} is being prepared", body, refresh)


def show_error(error: SubletError, notice: SessionNotice | None) -> Response:
    """Return a page that says why a session can't be opened."""
    sentences = notice.sentences if notice else (error.advice,)
    body = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences if sentence)
    return _page(error.status, error.message, body + (_link(notice) if notice else ""))


def _link(notice: SessionNotice) -> str:
    return f'<p><a href="{html.escape(notice.page)}">Its page</a></p>'


def _page(status: int, title: str, body: str, refresh: str = "") -> Response:
    content = PAGE.format(title=html.escape(title), style=STYLE, body=body, refresh=refresh)
    return Response(content, status, GUARDED, media_type="text/html")
