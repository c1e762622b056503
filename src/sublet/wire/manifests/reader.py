"""Reads an app's manifest, in whichever form it has one, with the operator's images in place of their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sublet.core.amounts import shown
from sublet.core.manifest import Image, Manifest
from sublet.wire.manifests import cybergis, simple, sublet_yaml
from sublet.wire.manifests.page import Finding, Page, Reading

MOST_BYTES = 1 << 20  # of a manifest
FILES = (sublet_yaml.FILE, cybergis.FILE, simple.FILE)  # looked for in this order
WANTED = (*FILES, simple.PARAMS)  # the files whose content is needed; of others it is enough that they are there
_SCRIPT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*\.(?:py|sh|R|jl|r|pl|ipynb)")


def read_manifest(
    files: Mapping[str, bytes],
    images: Mapping[str, Image] | None = None,
    *,
    name: str = "app",
    image: str = "",
) -> Reading:
    """The manifest among an app's files (path → content), and all that was found.

    `images` is the operator's table, None where nobody knows it; `name` and `image` are for apps that say neither.
    """
    forms = [form for form in FILES if form in files]
    if cybergis.FILE in forms and not _is_cybergis(files[cybergis.FILE]) and len(forms) > 1:
        forms.remove(cybergis.FILE)
    if not forms:
        told = f"there is no manifest: neither {', '.join(FILES[:-1])} nor {FILES[-1]}; `sublet app init` writes one."
        return Reading(None, (Finding(FILES[0], 0, told, error=True),))
    found = forms[0]
    if len(files[found]) > MOST_BYTES:
        return Reading(None, (Finding(found, 0, "it is larger than 1 MiB.", error=True),))
    pages, manifest = _read(found, files, name, image)
    page = pages[0]
    if manifest:
        manifest = _with_image(page, manifest, images)
        _check_scripts(page, manifest, files)
    if others := [form for form in forms[1:] if found != simple.FILE]:
        page.warn((), f"{', '.join(others)} is there too; {found} is what counts.")
    findings = tuple(sorted((f for page in pages for f in page.findings), key=lambda f: (f.file, f.line)))
    whole = None if any(finding.error for finding in findings) else manifest
    return Reading(whole, findings)


def _is_cybergis(content: bytes) -> bool:
    page = Page.of(cybergis.FILE, content)
    return page.broken or cybergis.is_cybergis(page.value)


def _read(form: str, files: Mapping[str, bytes], name: str, image: str) -> tuple[list[Page], Manifest | None]:
    if form == simple.FILE:
        page = Page(form, {"script": files[form].decode("utf-8", "replace")})
        params = Page.of(simple.PARAMS, files[simple.PARAMS]) if simple.PARAMS in files else None
        manifest = simple.read(page, cybergis.name_of(name), params)
        if not image:
            page.warn((), "it names no image; its maintainer's is used.")
        return [page, *([params] if params else [])], replace(manifest, image=Image(name=image))
    page = Page.of(form, files[form])
    if page.broken:
        return [page], None
    return [page], (sublet_yaml.read if form == sublet_yaml.FILE else cybergis.read)(page)


def _with_image(page: Page, manifest: Manifest, images: Mapping[str, Image] | None) -> Manifest:
    """The operator's image of that name."""
    path = ("container",) if manifest.source == cybergis.FILE else ("image",)
    image = manifest.image
    if image.location and not image.digest:
        page.warn(path, "the image has no digest: which one it is will be settled when the app is approved.")
    if not image.name or image.location or images is None:
        return manifest
    if image.name not in images:
        there = ", ".join(images) or "none"
        page.error(path, f"there is no image {shown(image.name)} here; there are: {there}.")
        return manifest
    return manifest.pinned_to(images[image.name].location, images[image.name].digest)


def _check_scripts(page: Page, manifest: Manifest, files: Mapping[str, bytes]) -> None:
    """Warn of scripts that a stage names and that are not among the files; it may make them itself."""
    fields = {stage: field for field, stage in cybergis.STAGES.items()}
    for stage in manifest.stages:
        text = stage.script or " ".join(stage.argv)
        words = [word for word in re.split(r"[\s;&|'\"]+", text) if _SCRIPT.fullmatch(word)]
        names = {name.rpartition("/")[2] for name in files}
        for word in dict.fromkeys(words):
            if word not in files and word.rpartition("/")[2] not in names:
                path = (fields[stage.name],) if manifest.source == cybergis.FILE else ("stages", stage.name)
                page.warn(path, f"the stage {stage.name} names {word}, which is not among the app's files.")
