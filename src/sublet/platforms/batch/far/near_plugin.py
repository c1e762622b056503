"""A file transfer plug-in at the access point, for nodes behind a spool: files that their system keeps aren't sent.

    near_plugin BRIDGE LARGE PLAIN -classad
    near_plugin BRIDGE LARGE PLAIN -infile ASKED -outfile SAID

    subletkept:///scratch/kept/sha256-1234/sha256-1234       a file that the system keeps
    subletkeptdir:///scratch/kept/sha256-1234/sha256-1234    a directory, as an archive

In place of such a file it leaves a note with its path, which the far half reads (annexes/split/far_kept.py).
For web addresses that a job names, it has the service bring the files to the system's cache (annexes/job_addresses.py).
The rest is left to PLAIN, one of HTCondor's own plug-ins; files of LARGE bytes or more that PLAIN transfers are then
kept on the system by their content. BRIDGE is the directory of the node's bridge.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time

from sublet.platforms.batch.far.asked import AskedFile, leave_to, read_asked

MARK = "sublet-kept 3f0d8c1e-6f0a-4b0e-9a51-6c1c8a4f7b52"  # the start of every note, and of nothing else
KINDS = {"subletkept": "file", "subletkeptdir": "tree"}
WEB = ("http", "https", "dav", "davs")
METHODS = re.compile(r'(?m)^(\s*SupportedMethods\s*=\s*")([^"]*)"')
PAUSE = 0.1  # seconds between two checks for an answer
SILENT = 10.0  # seconds without a heartbeat of the service after which waiting stops
REQUESTS = "asked"  # below BRIDGE


class ServiceRequest:
    """A request to the service to put something into the system's cache."""

    def __init__(self, bridge: str, words: dict[str, str]) -> None:
        """Write the request atomically, under a unique name."""
        self.path = os.path.join(bridge, REQUESTS, f"{os.urandom(8).hex()}.json")
        with open(self.path + ".part", "w") as file:
            json.dump(words, file)
        os.rename(self.path + ".part", self.path)

    def wait(self) -> str:
        """Wait for the answer, and return the path of the kept file.

        Empty if it isn't kept or the service doesn't answer.
        """
        seen, touched = time.monotonic(), 0.0
        while time.monotonic() - seen < SILENT:
            with contextlib.suppress(OSError), open(self.path + ".answer") as file:
                answer = json.load(file)
                break
            with contextlib.suppress(OSError):
                if os.stat(self.path).st_mtime != touched:  # touched by the service during the transfer
                    seen, touched = time.monotonic(), os.stat(self.path).st_mtime
            time.sleep(PAUSE)
        else:
            answer = {}
        for name in (self.path, self.path + ".answer"):
            with contextlib.suppress(OSError):
                os.remove(name)
        return str(answer.get("path", ""))


def ask(bridge: str, wanted: list[dict[str, str]]) -> list[str]:
    """Send several requests at once, and return the path of each kept file, or an empty string."""
    try:
        requests = [ServiceRequest(bridge, words) for words in wanted]
    except OSError:
        return [""] * len(wanted)
    return [request.wait() for request in requests]


def put_note(target: str, kind: str, place: str) -> int:
    """Write a note in place of a file, and return the note's size."""
    with open(target + ".note", "w") as file:
        file.write(f"{MARK} {kind} {place}\n")
    os.rename(target + ".note", target)
    return os.stat(target).st_size


def bring_web(bridge: str, wanted: list[AskedFile], answers: str) -> list[AskedFile]:
    """Have the service bring these files, report those that it brought, and return the others."""
    paths = ask(bridge, [{"url": each.url} for each in wanted])
    left = []
    with open(answers, "a") as file:
        for each, path in zip(wanted, paths):  # noqa: B905
            if path:
                file.write(each.describe(put_note(each.target, "file", path)))
            else:
                left.append(each)
    return left


def keep_large(bridge: str, large: int, brought: list[AskedFile]) -> None:
    """Have the system keep the large files among these, so that each is sent only once for all jobs."""
    targets = [each.target for each in brought if os.path.isfile(each.target) and not os.path.islink(each.target)]
    targets = [target for target in targets if os.stat(target).st_size >= large]
    for target, path in zip(targets, ask(bridge, [{"file": target} for target in targets])):  # noqa: B905
        if path:
            put_note(target, "file", path)


def transfer(bridge: str, large: int, plain: str, asked: str, answers: str) -> int:
    """Transfer all files that HTCondor asks for, and return the exit code."""
    with open(asked) as file:
        wanted = read_asked(file.read())
    schemes = {each: each.url.partition(":")[0].lower() for each in wanted}
    with open(answers, "w") as file:
        for each in [each for each in wanted if schemes[each] in KINDS]:
            place = each.url.partition("://")[2]
            file.write(each.describe(put_note(each.target, KINDS[schemes[each]], place)))
    left = bring_web(bridge, [each for each in wanted if schemes[each] in WEB], answers)
    left += [each for each in wanted if schemes[each] not in KINDS and schemes[each] not in WEB]
    code = leave_to(plain, left, asked, answers) if left else 0
    keep_large(bridge, large, left if not code else [])
    return code


def describe_self(plain: str) -> int:
    """Print the capabilities of HTCondor's own plug-in, with this plug-in's schemes added."""
    with subprocess.Popen([plain, "-classad"], stdout=subprocess.PIPE, universal_newlines=True) as process:
        text = process.communicate()[0]
    more = ",".join(KINDS)
    sys.stdout.write(METHODS.sub(lambda match: f'{match[1]}{match[2]},{more}"', text))
    return process.returncode


if __name__ == "__main__":
    words = sys.argv[4:]
    if words[:1] == ["-classad"]:
        sys.exit(describe_self(sys.argv[3]))
    if "-upload" in words or words[:1] != ["-infile"]:
        sys.exit(subprocess.call(sys.argv[3:]))
    options = dict(zip(words[0::2], words[1::2]))  # noqa: B905
    sys.exit(transfer(sys.argv[1], int(sys.argv[2]), sys.argv[3], options["-infile"], options["-outfile"]))
