"""Notebooks for the conformance suite: a command line in a cell."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sublet.booking.model.job import Program
from sublet.booking.model.kernels import BROUGHT, KERNEL, KERNEL_PLAN

CELL = """import subprocess, sys, threading

def copy(source, target):
    for line in source:
        target.write(line)
        target.flush()

process = subprocess.Popen({words!r}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
pairs = (process.stdout, sys.stdout), (process.stderr, sys.stderr)
threads = [threading.Thread(target=copy, args=pair) for pair in pairs]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if process.wait():
    sys.exit(process.returncode)
"""


def write_trial(argv: Sequence[str]) -> Program:
    """Make a notebook of one cell that runs this command line, prints its output, and ends as it does."""
    cell: dict[str, object] = {
        "cell_type": "code",
        "id": "trial",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": CELL.format(words=list(argv)),
    }
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": [cell]}
    files = {KERNEL_PLAN: b"{}", f"data/{BROUGHT}/trial.ipynb": json.dumps(notebook).encode()}
    return Program((KERNEL,), {}, files)
