"""URLs of files, whose names can have any character, even a line break."""

from __future__ import annotations

from starlette.convertors import PathConvertor, register_url_convertor


class AnyPath(PathConvertor):
    """The converter `{path:path}`, which also matches line breaks."""

    regex = "(?s:.*)"


def allow_any_path() -> None:
    """Use this converter for all routes that are created from now on."""
    register_url_convertor("path", AnyPath())
