"""Calls about a gateway's people and groups."""

from __future__ import annotations

from sublet.client.call import Call, as_view, body_of, nothing, path_of
from sublet.people.views.people import GroupList, GroupView, PersonList, PersonView


def people(role: str = "", blocked: bool = False, after: str = "") -> Call[PersonList]:
    """List people: all, those with a role, or those who are blocked."""
    query = {"role": role, "blocked": blocked, "after": after}
    return Call("GET", path_of("people"), as_view(PersonList), query=query)


def person(name: str) -> Call[PersonView]:
    """Show a person, by any of their addresses."""
    return Call("GET", path_of("people", name), as_view(PersonView))


def add(address: str, role: str = "person") -> Call[PersonView]:
    """Add someone before they first sign in."""
    return Call("POST", path_of("people"), as_view(PersonView), body=body_of({"address": address, "role": role}))


def remove(name: str) -> Call[None]:
    """Remove someone."""
    return Call("DELETE", path_of("people", name), nothing)


def set_role(name: str, role: str) -> Call[PersonView]:
    """Change someone's role."""
    return Call("PUT", path_of("people", name, "role"), as_view(PersonView), body=body_of({"role": role}))


def block(name: str, why: str = "", *, cancel: bool = False) -> Call[PersonView]:
    """Block someone; their active sessions continue, or are cancelled."""
    wish = {"why": why, "cancel": cancel}
    return Call("POST", path_of("people", name, "block"), as_view(PersonView), body=body_of(wish))


def unblock(name: str) -> Call[PersonView]:
    """Unblock someone."""
    return Call("POST", path_of("people", name, "unblock"), as_view(PersonView))


def add_identity(name: str, kind: str, value: str) -> Call[PersonView]:
    """Add an identity to a person."""
    wish = {"kind": kind, "value": value}
    return Call("POST", path_of("people", name, "identities"), as_view(PersonView), body=body_of(wish))


def remove_identity(name: str, kind: str, value: str) -> Call[PersonView]:
    """Remove an identity of a person."""
    query = {"kind": kind, "value": value}
    return Call("DELETE", path_of("people", name, "identities"), as_view(PersonView), query=query)


def groups() -> Call[GroupList]:
    """List the groups."""
    return Call("GET", path_of("groups"), as_view(GroupList))


def group(name: str) -> Call[GroupView]:
    """Show a group with its members."""
    return Call("GET", path_of("groups", name), as_view(GroupView))


def add_group(name: str, note: str = "") -> Call[GroupView]:
    """Add an empty group."""
    return Call("POST", path_of("groups"), as_view(GroupView), body=body_of({"name": name, "note": note}))


def remove_group(name: str) -> Call[None]:
    """Remove a group."""
    return Call("DELETE", path_of("groups", name), nothing)


def join(name: str, member: str) -> Call[GroupView]:
    """Add someone to a group."""
    return Call("PUT", path_of("groups", name, "members", member), as_view(GroupView))


def leave(name: str, member: str) -> Call[GroupView]:
    """Remove someone from a group."""
    return Call("DELETE", path_of("groups", name, "members", member), as_view(GroupView))
