"""What stock software makes of a service: run by a Python that has it, told what to look at as words.

`vosi URL` reads its capabilities and availability with pyvo; `decide POLICY` answers, for each line of standard input
that is an input document, what the decision of a Rego policy is.
"""

from __future__ import annotations

import io
import json
import sys
import urllib.request
from pathlib import Path
from typing import Any


def read_vosi(url: str) -> dict[str, Any]:
    """What pyvo reads, by the letter of the standard."""
    from pyvo.io import vosi

    def fetch(path: str) -> io.BytesIO:
        with urllib.request.urlopen(f"{url}{path}", timeout=20) as answer:
            return io.BytesIO(answer.read())

    capabilities = vosi.parse_capabilities(fetch("/capabilities"), pedantic=True)
    availability = vosi.parse_availability(fetch("/availability"), pedantic=True)
    urls = {each.standardid: each.interfaces[0].accessurls[0].content for each in capabilities}
    return {"urls": urls, "available": bool(availability.available), "since": str(availability.upsince)}


def decide(policy: str) -> None:
    """The decision of `sublet` for each input."""
    from regopy import Interpreter

    for line in sys.stdin:
        rego = Interpreter()
        rego.add_module("sublet", Path(policy).read_text())
        rego.set_input(json.loads(line))
        output = rego.query("data.sublet.decision")
        print(json.dumps(output.results[0].expressions[0]), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "vosi":
        print(json.dumps(read_vosi(sys.argv[2])))
    else:
        decide(sys.argv[2])
