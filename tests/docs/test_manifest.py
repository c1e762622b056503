"""The page on manifests is true: its example is a manifest, and it names every field there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from sublet.apps.manifests import cybergis, sublet_yaml
from sublet.apps.manifests.cybergis_rules import KEYS
from sublet.apps.manifests.reader import read_manifest
from sublet.apps.model.resources import NAMES
from sublet.kernel.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "manifest.md").read_text()


def example(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_is_a_manifest_without_any_fault() -> None:
    files = {"sublet.yaml": example("yaml").encode(), "main.py": b"", "draw.py": b""}
    reading = read_manifest(files)
    assert not reading.findings
    assert reading.manifest


def test_every_field_and_resource_is_named() -> None:
    raw = {field for field in cybergis.FIELDS if field.endswith(cybergis.RAW)}
    plain = {"description", "name", "repository", "estimated_runtime"}
    for name in {*sublet_yaml.FIELDS, *NAMES, *KEYS, *cybergis.FIELDS} - raw - plain:
        assert f"`{name}" in PAGE, name


def test_the_operators_images_are_settings_that_can_be_read(tmp_path: Path) -> None:
    images = Settings(home=tmp_path, **tomllib.loads(example("toml"))).images
    assert images["python"].digest.startswith("sha256:")
    assert images["cybergisx-0.4"].location.endswith(".sif")
