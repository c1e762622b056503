"""Shared parts of HTTP: bodies, problems, who asks, and what OpenAPI says; each subject has its own routers."""

from sublet.api.views import every_view

ANSWERS = ("View", "List", "Page", "History", "Report")  # endings of the names of views that are answers
ALSO_ASKED = {"DetailsView"}  # an answer by its name, but also part of requests

# Pydantic builds their schemas on first use, not when a service starts, since there are very many.
for _name, _view in every_view().items():
    if _name.endswith(ANSWERS) and _name not in ALSO_ASKED:
        setattr(_view, "__pydantic_config__", {"defer_build": True})  # noqa: B010 - they don't declare it
