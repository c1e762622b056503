"""The scope that each endpoint requires of a token; endpoints that aren't listed require the strongest."""

from __future__ import annotations

from fastapi import Request
from starlette.routing import compile_path

from sublet.api.paths import allow_any_path
from sublet.kernel.errors import OutOfScope
from sublet.people.model.person import Person
from sublet.people.model.scopes import Scope, allows

allow_any_path()
LOOKS = frozenset({"GET", "HEAD"})

CHANGES: dict[str, Scope] = {  # path prefix → the scope that changes need
    "/requests": Scope.RUN,
    "/offersets": Scope.RUN,
    "/direct": Scope.RUN,
    "/sessions": Scope.RUN,
    "/v1/offersets": Scope.RUN,
    "/v1/sessions": Scope.RUN,
    "/v1/jobs": Scope.RUN,
    "/v1/dags": Scope.RUN,
    "/v1/uploads": Scope.RUN,
    "/v1/tus": Scope.RUN,
    "/compat/cybergis": Scope.RUN,
}

OF_ONE_SESSION = frozenset(  # all requests that a session's own token allows
    {
        ("GET", "/sessions/{uuid}"),
        ("GET", "/v1/sessions/{id}"),
        ("GET", "/v1/sessions/{id}/explain"),
        ("GET", "/v1/sessions/{id}/logs"),
        ("GET", "/v1/sessions/{id}/results"),
        ("GET", "/v1/sessions/{id}/results/{path:path}"),
        ("GET", "/v1/sessions/{id}/archive"),
        ("POST", "/v1/sessions/{id}/cancel"),
        ("POST", "/v1/sessions/{id}/pause"),
        ("POST", "/v1/sessions/{id}/resume"),
        ("GET", "/v1/events"),
    }
)


_OF_ONE_SESSION = tuple((method, compile_path(path)[0]) for method, path in sorted(OF_ONE_SESSION))


def find_needed(method: str, path: str) -> Scope:
    """Return the scope that a request needs."""
    if method in LOOKS:
        return Scope.READ
    fitting = (scope for start, scope in CHANGES.items() if path == start or path.startswith(f"{start}/"))
    return next(fitting, Scope.MANAGE)


def check_scope(request: Request, person: Person) -> None:
    """Raise OutOfScope if the caller's token doesn't allow the request."""
    path = str(request.scope["path"]).removeprefix(request.scope.get("root_path", ""))
    if person.session:
        name = _session_in(request, path)
        if not name or not person.session.startswith(name):
            raise OutOfScope("This token is for one session only.", hint="Use a token of your own for all else.")
    elif not allows(person.scope, need := find_needed(request.method, path)):
        raise OutOfScope(scope=" ".join(person.scope), needed=need)


def _session_in(request: Request, path: str) -> str:
    """Return the session that a request is about, if a session's token allows such a request; otherwise ""."""
    for method, pattern in _OF_ONE_SESSION:
        if method == request.method and (match := pattern.fullmatch(path)):
            parts = match.groupdict()
            return str(parts.get("id") or parts.get("uuid") or request.query_params.get("session", "")).lower()
    return ""
