"""The requests and answers of HTCondor's file transfer plug-ins. It is sent along with the plug-ins."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess

PAIR = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


class AskedFile:
    """One file that a job needs."""

    def __init__(self, url: str, target: str) -> None:
        """Set the file's URL and its local target."""
        self.url, self.target = url, target

    def describe(self, size: int) -> str:
        """Return the ClassAd which reports that the file was transferred."""
        facts = [
            f'TransferUrl = "{self.url}"',
            f'TransferFileName = "{self.target}"',
            'TransferProtocol = "{}"'.format(self.url.partition(":")[0].lower()),
            'TransferType = "download"',
            "TransferSuccess = true",
            f"TransferFileBytes = {size}",
            f"TransferTotalBytes = {size}",
        ]
        return "[ " + "; ".join(facts) + " ]\n"


def read_asked(text: str) -> list[AskedFile]:
    """Read HTCondor's request: ClassAds that each name a Url and a LocalFileName."""
    values: dict[str, list[str]] = {"url": [], "localfilename": []}
    for name, value in PAIR.findall(text):
        if name.lower() in values:
            values[name.lower()].append(value)
    return [AskedFile(url, target) for url, target in zip(values["url"], values["localfilename"])]  # noqa: B905


def leave_to(plain: str, left: list[AskedFile], asked: str, answers: str) -> int:
    """Let HTCondor's own plug-in transfer the remaining files, and return its exit code."""
    with open(f"{asked}.rest", "w") as file:
        for each in left:
            file.write(f'[ LocalFileName = "{each.target}"; Url = "{each.url}" ]\n')
    code = subprocess.call([plain, "-infile", f"{asked}.rest", "-outfile", f"{answers}.rest"])
    with contextlib.suppress(OSError), open(f"{answers}.rest") as file, open(answers, "a") as whole:
        whole.write(file.read())
    for name in (f"{asked}.rest", f"{answers}.rest"):
        with contextlib.suppress(OSError):
            os.remove(name)
    return code
