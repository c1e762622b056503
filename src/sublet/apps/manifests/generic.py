"""Code without a manifest, by a maintainer's kind: its only notebook, or its only Python program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sublet.apps.manifests import notebook, simple
from sublet.apps.manifests.page import ManifestPage
from sublet.apps.model.manifest import EXECUTION, JOB, AppStage, Manifest
from sublet.booking.model.amounts import quote_value
from sublet.kernel.errors import BadRequest

JUPYTER, PYTHON = "jupyter", "python"
ENTRIES = ("main.py", "entry.py")  # what the kind python runs
NOT_INSTALLED = ("requirements.txt", "environment.yml", "environment.yaml")
# Kind → whether it would run a file, what it runs in words, and how a manifest names another file.
KINDS: dict[str, tuple[Callable[[str], bool], str, str]] = {
    JUPYTER: (lambda path: path.endswith(notebook.SUFFIX), f"the only *{notebook.SUFFIX}", "notebook: {}"),
    PYTHON: (lambda path: path in ENTRIES, " or ".join(ENTRIES), "run: python3 {}"),
}
TAKEN = {
    JUPYTER: "there is no manifest: a maintainer of the kind jupyter executes this notebook in its image.",
    PYTHON: "there is no manifest: a maintainer of the kind python runs this by python3 in its image.",
}


def kinds_of(kind: str) -> tuple[str, ...]:
    """Return the given kind, or all of them."""
    if kind and kind not in KINDS:
        raise BadRequest(detail=f"kind: there is no {quote_value(kind)}", hint=f"There are: {', '.join(KINDS)}.")
    return (kind,) if kind else tuple(KINDS)


def candidates(files: Mapping[str, bytes], kinds: Sequence[str] = tuple(KINDS)) -> dict[str, list[str]]:
    """Return the top-level files that each kind would run; kinds without any are left out."""
    by_kind = {kind: sorted(path for path in files if "/" not in path and KINDS[kind][0](path)) for kind in kinds}
    return {kind: paths for kind, paths in by_kind.items() if paths}


def problem(files: Mapping[str, bytes], kinds: Sequence[str]) -> str:
    """Return why it isn't clear what to run, and what to do; empty if it is clear."""
    likely = candidates(files, kinds)
    if not likely:
        wanted = "; ".join(f"the kind {kind} runs {KINDS[kind][1]} at the top, and there is none" for kind in kinds)
        return f"there is no manifest, and {wanted}; put it there, or write a manifest: `sublet app init`."
    if len(likely) > 1:
        taken = " or ".join(f"{', '.join(paths)} (kind {kind})" for kind, paths in likely.items())
        return f"there is no manifest, and it could be {taken}: say which with --kind, as the maintainer has it."
    ((kind, paths),) = likely.items()
    if len(paths) > 1:
        named = KINDS[kind][2].format(paths[0])
        return f"there are {', '.join(paths)}: keep one of them at the top, or say in sublet.yaml which: `{named}`."
    return ""


def read(files: Mapping[str, bytes], kinds: Sequence[str], name: str) -> tuple[list[ManifestPage], Manifest | None]:
    """Build the manifest of the only file that can be run."""
    ((kind, (path,)),) = candidates(files, kinds).items()
    page = ManifestPage(path)
    params = ManifestPage.of(simple.PARAMS, files[simple.PARAMS]) if simple.PARAMS in files else None
    plain = Manifest(name, path, (), folder=JOB, writable=True, any_parameters=params is None)
    plain = replace(plain, parameters=simple.parameters(params) if params else ())
    manifest = (_notebook if kind == JUPYTER else _program)(page, plain, files[path], params)
    for listed in NOT_INSTALLED:
        if listed in files:
            page.warn((), f"{listed} is not installed: it runs with what the maintainer's image has.")
    return [page, *([params] if params else [])], manifest


def _program(page: ManifestPage, plain: Manifest, content: bytes, params: ManifestPage | None) -> Manifest:
    if not content.strip():
        page.error((), f"{plain.source} is empty: there is nothing to run.")
    return replace(plain, stages=(AppStage(EXECUTION, ("python3", plain.source)),))


def _notebook(page: ManifestPage, plain: Manifest, content: bytes, params: ManifestPage | None) -> Manifest | None:
    read = notebook.read(page, plain.source, content)
    if read is None:
        return None
    manifest = replace(plain, stages=(read.stage,), notebook=read.path, results=(notebook.EXECUTED,))
    if params is None and read.cell is not None:
        named, others = notebook.parameters(page, read.cell)
        return replace(manifest, parameters=named, any_parameters=others)
    notebook.check_names(params or page, (), manifest)
    return manifest


def kind_of(manifest: Manifest) -> str:
    """Return the kind of maintainer that runs code without a manifest; empty if it has one."""
    return next((kind for kind, (takes, *_) in KINDS.items() if takes(manifest.source)), "")
