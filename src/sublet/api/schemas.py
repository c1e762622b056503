"""JSON schemas of documents that aren't views: IVOA's, the short form, and problems."""

from __future__ import annotations

from typing import Any

from sublet.booking.documents.kinds import uri_of
from sublet.booking.model.phases import Phase

Schema = dict[str, Any]

LIFECYCLE = (
    "INITIALIZING",
    "WAITING",
    "PREPARING",
    "AVAILABLE",
    "RUNNING",
    "RELEASING",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
)


def ref(name: str) -> Schema:
    """Return a reference to one of the schemas below."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Schema, required: tuple[str, ...] = (), **more: Any) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, **more}
    return schema | {"required": list(required)} if required else schema


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    """Return a schema that also allows null, which means the same as a missing field."""
    return schema | {"type": [*_types(schema), "null"]} if "type" in schema else {"anyOf": [schema, {"type": "null"}]}


def _types(schema: Schema) -> list[str]:
    return schema["type"] if isinstance(schema["type"], list) else [schema["type"]]


TEXT: Schema = {"type": "string"}
UUID: Schema = {"type": "string", "format": "uuid"}
INSTANT: Schema = {"type": "string", "format": "date-time"}
DURATION: Schema = {"type": "string", "format": "duration", "examples": ["PT2H"]}
INTERVALS: Schema = {"examples": ["2026-12-01T09:00:00Z/PT3H", "2026-12-01/2026-12-02"]}
INTERVAL: Schema = {"type": "string", **INTERVALS}
NUMBER: Schema = {"type": "number"}
NUMBER_OR_TEXT: Schema = {"type": ["number", "string", "null"]}
KIND: Schema = {"type": "string", "minLength": 1, "description": "A URI that names the kind."}

MESSAGE = _object(
    {
        "kind": TEXT,
        "time": INSTANT,
        "level": {"type": "string", "enum": ["DEBUG", "INFO", "WARN", "ERROR", "OTHER"]},
        "template": TEXT,
        "values": {"type": "object", "additionalProperties": TEXT},
        "message": TEXT,
    },
    ("kind", "time", "level", "template", "message"),
)
OPTION = _object(
    {
        "kind": {"type": "string", "enum": ["uri:enum-value-option", "uri:integer-delta-option"]},
        "path": TEXT,
        "values": _list(TEXT),
        "min": {"type": "integer"},
        "max": {"type": "integer"},
        "units": TEXT,
    },
    ("kind", "path"),
)
META = _object(
    {
        "uuid": UUID,
        "name": TEXT,
        "description": TEXT,
        "url": {"type": "string", "format": "uri"},
        "created": INSTANT,
        "modified": INSTANT,
        "messages": _list(MESSAGE),
        "options": _list(OPTION),
    }
)
SCHEDULE = _object(
    {
        "preparing": _object({"start": INSTANT, "duration": DURATION}),
        "available": _object({"start": INTERVAL, "duration": DURATION}),
        "releasing": _object({"start": INSTANT, "duration": DURATION}),
    }
)
COMPONENT = _object(
    {"kind": KIND, "meta": META, "phase": {"type": "string", "enum": list(LIFECYCLE)}, "schedule": SCHEDULE},
    ("kind", "meta", "phase"),
)
QUOTE = _object({"kind": KIND, "type": TEXT, "description": TEXT, "min": NUMBER, "max": NUMBER}, ("kind", "type"))
CONNECTOR = _object(
    {
        "kind": TEXT,
        "status": {"type": "string", "enum": ["PREPARING", "AVAILABLE", "FINISHED"]},
        "protocol": TEXT,
        "location": TEXT,
    },
    ("kind", "status", "protocol", "location"),
)
SESSION = _object(
    {
        "kind": {"const": uri_of("session", "scheduled-execution-session")},
        "meta": META,
        "phase": {"type": "string", "enum": [phase.value for phase in Phase]},
        "expires": INSTANT,
        "schedule": SCHEDULE,
        "executable": COMPONENT,
        "compute": COMPONENT,
        "storage": _list(COMPONENT),
        "data": _list(COMPONENT),
        "costs": _list(QUOTE),
        "metrics": _list(QUOTE),
        "connectors": _list(CONNECTOR),
    },
    ("kind", "meta", "phase"),
    description="A session, or an offer: IVOA's scheduled-execution-session.",
)
OFFERSET = _object(
    {
        "kind": {"const": uri_of("offerset", "execution-offerset")},
        "meta": META,
        "result": {"type": "string", "enum": ["YES", "NO"]},
        "offers": _list(ref("ExecutionSession")),
    },
    ("kind", "meta", "result", "offers"),
    description="IVOA's OfferSetResponse: YES with offers, or NO with `meta.messages` that say why.",
)

CALLED = _or_null(_object({"name": {"description": "A name, by which other parts refer to this one."}}))
EXECUTABLE = _object({"kind": KIND, "meta": CALLED}, ("kind",))
ASKED = _object({"kind": _or_null(KIND), "meta": CALLED})  # `kind` is optional where there is only one
LIMIT = _object({"type": KIND, "min": NUMBER_OR_TEXT, "max": NUMBER_OR_TEXT}, ("type",))
WHEN = _object({"duration": _or_null(DURATION), "start": {"type": ["string", "array", "null"], **INTERVALS}})
REQUEST = _object(
    {
        "executable": _or_null(EXECUTABLE) | {"description": "What is to run; its other fields are those of its kind."},
        "compute": _or_null(ASKED)
        | {"description": "cores, memory (GiB); with Sublet's own kind also nodes and gpus."},
        "storage": _or_null(_list(ASKED)),
        "data": _or_null(_list(ASKED)),
        "schedule": _or_null(_object({"requested": _or_null(WHEN)})),
        "costs": _or_null(_list(LIMIT)),
        "metrics": _or_null(_list(LIMIT)),
    },
    description="IVOA's ExecutionRequest. Older shapes of it are read too.",
)
UPDATE = _object(
    {
        "kind": {
            "type": "string",
            "enum": [f"uri:{name}-update" for name in ("enum-value", "string-value", "integer-value", "integer-delta")],
        },
        "path": {"type": "string", "minLength": 1, "examples": ["phase", "schedule.available.duration"]},
        "value": {"examples": ["ACCEPTED", "REJECTED", "CANCELLED"]},
        "delta": _or_null({"type": "integer"}),
        "units": _or_null({"type": "string", "examples": ["seconds", "minutes", "hours", "days"]}),
    },
    ("kind", "path"),
    description="IVOA's AbstractUpdate: one of the changes that `meta.options` lists.",
)
SHORT = {
    "type": "object",
    "description": "The short form that a person would write (docs/reference/request.md), or the full document.",
    "examples": [{"run": ["python", "sim.py"], "cores": 4, "memory": "8GiB", "time": "2h"}],
}
PROBLEM = _object(
    {
        "type": {"type": "string", "format": "uri"},
        "title": TEXT,
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "The error's name, for programs."},
        "detail": {"type": "string", "description": "What went wrong."},
        "hint": {"type": "string", "description": "What can be done about it."},
        "errors": _list(_object({"field": TEXT, "message": TEXT}, ("field", "message"))),
    },
    ("type", "title", "status", "code", "detail", "hint"),
    description="An RFC 9457 problem.",
)

COMPONENTS: dict[str, Schema] = {
    "ExecutionRequest": REQUEST,
    "ExecutionSession": SESSION,
    "OfferSetResponse": OFFERSET,
    "Update": UPDATE,
    "ShortRequest": SHORT,
    "Problem": PROBLEM,
}
