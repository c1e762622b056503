"""Recitals: a poem that was brought is printed, with a title."""

from collections.abc import Mapping, Sequence

from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Executable, Request
from sublet.kinds.port import Kind, Setting, Way

TOOL = "stage"


class Recital(Kind):
    """The kind `recital`."""

    name = "recital"
    uri = "urn:lodger:kind:executable:recital"

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """It needs a title."""
        if executable.fields.get("title"):
            return ()
        return [Reason("urn:missing-value", "executable.title", "A recital needs a title.")]

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """On a stage, which is as good as a container."""
        if TOOL not in tools:
            return []
        return [Way("stage", contained=True, program=lambda setting: _recite(executable, setting))]

    def needs(self, executable: Executable) -> str:
        """A stage."""
        return "a stage"


def _recite(executable: Executable, setting: Setting) -> Program:
    poem = f"{setting.find_brought('poem')}/poem.txt"
    script = 'echo "$1"; cat "$2"; echo done >encore.txt'
    return Program(("sh", "-c", script, "recital", executable.fields["title"], poem))


RECITAL = Recital()
