"""Addresses of files: a file's name can have any character in it, a line break too."""

from __future__ import annotations

from starlette.convertors import PathConvertor, register_url_convertor


class AnyPath(PathConvertor):
    """`{path:path}`, over several lines if need be."""

    regex = "(?s:.*)"


def allow_any_path() -> None:
    """Make it so for all routes that are made from now on."""
    register_url_convertor("path", AnyPath())
