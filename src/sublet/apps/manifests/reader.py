"""Reads an app's manifest in any format, or code without one, and looks up the operator's images."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sublet.apps.manifests import cybergis, generic, notebook, simple, sublet_yaml
from sublet.apps.manifests.page import ManifestFinding, ManifestPage, ManifestReading
from sublet.apps.model.manifest import AppImage, Manifest
from sublet.booking.model.amounts import quote_value

MOST_BYTES = 1 << 20  # of a manifest
FILES = (sublet_yaml.FILE, cybergis.FILE, simple.FILE)  # in order of precedence
_SCRIPT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*\.(?:py|sh|R|jl|r|pl|ipynb)")


def read_manifest(
    files: Mapping[str, bytes],
    images: Mapping[str, AppImage] | None = None,
    *,
    name: str = "app",
    image: str = "",
    kinds: Sequence[str] = (),
) -> ManifestReading:
    """Read the manifest among an app's files (path → content), and return it with all findings.

    `images` is the operator's table, None if it isn't known; `name` and `image` are for apps that state neither;
    `kinds` are those of the maintainers that would run code without a manifest.
    """
    forms = [form for form in FILES if form in files]
    more = len(forms) > 1 or generic.candidates(files, kinds)
    if cybergis.FILE in forms and more and not _is_cybergis(files[cybergis.FILE]):
        forms.remove(cybergis.FILE)
    if not forms and (complaint := _no_manifest(files, kinds)):
        return ManifestReading(None, (ManifestFinding(FILES[0], 0, complaint, error=True),))
    found = forms[0] if forms else ""
    if found and len(files[found]) > MOST_BYTES:
        return ManifestReading(None, (ManifestFinding(found, 0, "it is larger than 1 MiB.", error=True),))
    pages, manifest = _read(found, files, name, image) if found else _generic(files, kinds, name, image)
    page = pages[0]
    if manifest:
        manifest = _with_image(page, manifest, images)
        _check_scripts(page, manifest, files)
    if others := [form for form in forms[1:] if found != simple.FILE]:
        page.warn((), f"{', '.join(others)} is there too; {found} is what counts.")
    findings = tuple(sorted((f for page in pages for f in page.findings), key=lambda f: (f.file, f.line)))
    whole = None if any(finding.error for finding in findings) else manifest
    return ManifestReading(whole, findings)


def _no_manifest(files: Mapping[str, bytes], kinds: Sequence[str]) -> str:
    """Return why code without a manifest can't be run; empty if it can."""
    likely = generic.candidates(files)
    if kinds and (len(kinds) == 1 or likely):
        return generic.problem(files, kinds)
    sentence = f"there is no manifest: neither {', '.join(FILES[:-1])} nor {FILES[-1]}; `sublet app init` writes one"
    others = "; ".join(f"a maintainer of the kind {kind} would run {', '.join(likely[kind])}" for kind in likely)
    return f"{sentence}; or name a maintainer: {others}." if others else f"{sentence}."


def _generic(
    files: Mapping[str, bytes], kinds: Sequence[str], name: str, image: str
) -> tuple[list[ManifestPage], Manifest | None]:
    pages, manifest = generic.read(files, kinds, cybergis.name_of(name))
    if manifest is None:
        return pages, None
    pages[0].warn((), generic.TAKEN[generic.kind_of(manifest)])
    return pages, replace(manifest, image=AppImage(name=image))


def _is_cybergis(content: bytes) -> bool:
    page = ManifestPage.of(cybergis.FILE, content)
    return page.broken or cybergis.is_cybergis(page.value)


def _read(form: str, files: Mapping[str, bytes], name: str, image: str) -> tuple[list[ManifestPage], Manifest | None]:
    if form == simple.FILE:
        page = ManifestPage(form, {"script": files[form].decode("utf-8", "replace")})
        params = ManifestPage.of(simple.PARAMS, files[simple.PARAMS]) if simple.PARAMS in files else None
        manifest = simple.read(page, cybergis.name_of(name), params)
        if not image:
            page.warn((), "it names no image; its maintainer's is used.")
        return [page, *([params] if params else [])], replace(manifest, image=AppImage(name=image))
    page = ManifestPage.of(form, files[form])
    if page.broken:
        return [page], None
    manifest = (sublet_yaml.read if form == sublet_yaml.FILE else cybergis.read)(page)
    return [page], notebook.executing(page, manifest, files) if manifest.notebook else manifest


def _with_image(page: ManifestPage, manifest: Manifest, images: Mapping[str, AppImage] | None) -> Manifest:
    """Replace an image's name by the operator's image."""
    path = ("container",) if manifest.source == cybergis.FILE else ("image",)
    image = manifest.image
    if image.location and not image.digest:
        page.warn(path, "the image has no digest: which one it is will be settled when the app is approved.")
    if not image.name or image.location or images is None:
        return manifest
    if image.name not in images:
        there = ", ".join(images) or "none"
        page.error(path, f"there is no image {quote_value(image.name)} here; there are: {there}.", is_about_image=True)
        return manifest
    return manifest.pin_to(images[image.name].location, images[image.name].digest)


def _check_scripts(page: ManifestPage, manifest: Manifest, files: Mapping[str, bytes]) -> None:
    """Warn of scripts that a stage names and that aren't among the files; a stage may create them itself."""
    fields = {stage: field for field, stage in cybergis.STAGES.items()}
    for stage in manifest.stages:
        text = stage.script or " ".join(stage.argv)
        words = [word for word in re.split(r"[\s;&|'\"]+", text) if _SCRIPT.fullmatch(word)]
        names = {name.rpartition("/")[2] for name in files}
        for word in dict.fromkeys(words):
            if word not in files and word.rpartition("/")[2] not in names:
                path = (fields[stage.name],) if manifest.source == cybergis.FILE else ("stages", stage.name)
                page.warn(path, f"the stage {stage.name} names {word}, which is not among the app's files.")
