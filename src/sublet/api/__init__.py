"""Shared parts of HTTP: bodies, problems, who asks, and what OpenAPI says; each subject has its own routers."""

from sublet.api.views import every_view

ANSWERS = ("View", "List", "Page", "History", "Report")  # how the names of views end that go out
ALSO_ASKED = {"DetailsView"}  # and comes in too

# Pydantic studies these when they first travel, not when a service starts: there are very many.
for _name, _view in every_view().items():
    if _name.endswith(ANSWERS) and _name not in ALSO_ASKED:
        setattr(_view, "__pydantic_config__", {"defer_build": True})  # noqa: B010 - they don't declare it
