"""The script that tries tests as on other machines explains itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "elsewhere"


def test_every_variant_is_described_and_an_unknown_one_is_refused() -> None:
    explained = subprocess.run([SCRIPT, "--help"], capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in SCRIPT.read_text().splitlines() if line.startswith("variants=")]
    for variant in line.partition("=")[2].strip('"').split():
        assert f"\n  {variant} " in explained
    assert "\n  scripts/elsewhere no-tun -- tests/real/test_kinds_container.py\n" in explained
    refused = subprocess.run([SCRIPT, "nowhere"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: there is no variant nowhere.\n\nhint: ")
