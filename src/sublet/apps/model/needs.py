"""Finds what an app needs besides its image, from its manifest and the code that its stages run.

The code is read, not run; findings are shown to authors, proposers and reviewers, with where they were found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from sublet.apps.model.manifest import OWN, AppPlace, Manifest
from sublet.apps.model.resources import size_least_run
from sublet.booking.model.amounts import memory_text

LARGEST = 1 << 20  # bytes of a file that are read
MOST_FILES = 200
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
NOTEBOOK = ".ipynb"
FOLDERS = ("job/executable/", "executable_folder/")  # where an app's files are while it runs
COMMENT = re.compile(r"\s*(?:#|//|%)(?!include)")


class NeedKind(StrEnum):
    """What an app can need."""

    MOUNT = "mount"  # a folder of a centre
    UPLOAD = "upload"  # data that the person who runs it provides
    MPI = "mpi"
    NETWORK = "network"  # internet access while it runs
    GPU = "gpu"
    IMAGE = "image"  # one that the operator has named
    NODE = "node"  # large enough for the smallest run
    UNSEEN = "unseen"  # whatever a program in the image needs


@dataclass(frozen=True, slots=True)
class Need:
    """One need, and where it was found."""

    kind: NeedKind
    what: str  # a path, a program, a field
    where: str  # FILE:LINE
    cores: int = 0  # of a node
    memory: int = 0  # of a node, in bytes


# Folders that CyberGIS-Compute mounted in containers, and those of the centres themselves.
MOUNTED = re.compile(
    r"(?<![\w$}.~-])(/(?:compute_[a-z]+|cvmfs|projects?|gpfs|lustre|scratch|anvil/\w+|expanse/lustre|jet/home"
    r"|data/(?:cigi|keeling))(?=[/\"'\s$;,)]|$))"
)
# A program in the image that isn't among the app's files; interpreters and the like need nothing by themselves.
OWN_PROGRAM = re.compile(
    r"(?<![\w$}.~/-])(/(?:usr/local|opt)/(?:[\w.-]+/)*"
    r"(?!(?:python|R|Rscript|perl|julia|bash|sh|env|conda|mamba|java)[\d.]*(?![\w.-]))[\w-]+\.(?:sh|py|r|R|jl|exe))(?![\w/])"
)
CODE = (".py", ".sh", ".r", ".R", ".jl")
SIGNS: dict[NeedKind, re.Pattern[str]] = {
    NeedKind.MOUNT: MOUNTED,
    NeedKind.MPI: re.compile(r"\b(mpi4py|mpirun|mpiexec|MPI_Init|Rmpi|pbdMPI|MPI\.Init|mpi\.h)\b"),
    NeedKind.NETWORK: re.compile(
        r"\b(git clone|wget|curl|(?:pip3?|conda|mamba) install|install\.packages|download\.file"
        r"|requests\.(?:get|post|put|head|request|Session)|from requests import|urllib\.request|urlopen|urlretrieve"
        r"|httpx\.\w+|aiohttp|urllib3|boto3|gdown|pooch|wget\.download"
        r"|(?:read_\w+|open\w*|fread|read\.\w+)(?=\(\s*f?[\"'](?:https?|s3|ftp)://)"
        r"|Datasets\.load_data|load_example|geodatasets\.get_\w+|fetch_(?:openml|california_housing)"
        r"|(?:ox|osmnx)\.(?:(?:graph|features|geometries)_from_(?!xml|gdfs?\b)\w+|geocode\w*))\b"
    ),
    NeedKind.UNSEEN: OWN_PROGRAM,
}
WORDS = {
    NeedKind.MOUNT: "a mount: it uses {what} ({where}), a folder of a centre; a place of that name answers it, or what "
    "is in it comes as data",
    NeedKind.UPLOAD: "data: whoever runs it brings some ({where}), uploaded, or named by an address",
    NeedKind.MPI: "MPI: it uses {what} ({where}); its tasks are started by srun on Slurm, else by mpirun",
    NeedKind.NETWORK: "the internet: it fetches while it runs ({what}, {where}), and compute nodes may have no way out",
    NeedKind.GPU: "GPUs ({where})",
    NeedKind.IMAGE: "an image: it names {what} ({where})",
    NeedKind.NODE: "a larger node: one with {what} ({where})",
    NeedKind.UNSEEN: "what a program of its image needs: it runs {what} ({where}), which can't be read here, and may "
    "use the internet or folders of a centre",
}


def find_needs(manifest: Manifest, files: Mapping[str, bytes]) -> list[Need]:
    """Return everything that the app needs, each kind once; mounts once per folder."""
    last_first = reversed(_read(manifest, files))  # so that the first of each is kept
    needs = {(need.kind, need.what if need.kind is NeedKind.MOUNT else ""): need for need in last_first}
    return sorted(needs.values(), key=lambda need: (list(NeedKind).index(need.kind), need.what))


def find_named_image(manifest: Manifest) -> list[Need]:
    """Return the image as a need, if the manifest only has a name for it, which only an operator can resolve."""
    image = manifest.image
    return [Need(NeedKind.IMAGE, image.name, manifest.source)] if image.name and not image.location else []


def find_least_node(manifest: Manifest) -> Need:
    """Return the smallest node that a run fits on."""
    least = size_least_run(manifest).amounts.shape
    return Need(NeedKind.NODE, node_text(least.cores, least.memory), manifest.source, least.cores, least.memory)


def node_text(cores: int, memory: int) -> str:
    """Describe the size of a node."""
    return f"{cores} core{'s' if cores > 1 else ''} and {memory_text(memory)} of memory"


def describe_need(need: Need) -> str:
    """Describe a need, to follow `needs`."""
    return WORDS[need.kind].format(what=need.what, where=need.where)


def name_need(need: Need) -> str:
    """Name a need in a word or two."""
    return re.split("[:(]", WORDS[need.kind])[0].strip()


def name_place(path: str) -> str:
    """Return the name of the place that stands for a folder of a centre: `/compute_shared` is compute_shared."""
    return path.strip("/").replace("/", "_")


def add_found_places(manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
    """Return the manifest with the centre folders that its code uses as optional places.

    Sublet's own format states its places itself.
    """
    if manifest.source == OWN:
        return manifest
    named = {place.name for place in manifest.places}
    used = [name_place(need.what) for need in find_needs(manifest, files) if need.kind is NeedKind.MOUNT]
    more = [AppPlace(name, writable=True, required=False) for name in dict.fromkeys(used) if name not in named]
    return replace(manifest, places=(*manifest.places, *more))


def _read(manifest: Manifest, files: Mapping[str, bytes]) -> list[Need]:
    needs = [Need(NeedKind.UPLOAD, item.name, manifest.source) for item in manifest.data if item.required]
    needs += [
        Need(NeedKind.MOUNT, place.path or f"/{place.name}", manifest.source)
        for place in manifest.places
        if place.required
    ]
    gpus = (bounds for name, bounds in manifest.resources.items() if name.startswith("gpus"))
    needs += [Need(NeedKind.GPU, "gpus", manifest.source) for bounds in gpus if bounds.min > 0]
    for path, text in _list_reached(manifest, files):
        for where, line in _read_lines(path, text):
            matches = ((kind, sign.search(line)) for kind, sign in SIGNS.items())
            needs += [Need(kind, match[1], where) for kind, match in matches if match]
    return needs


def _read_lines(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield each line of code with its position; for a notebook the lines of its code cells, without outputs."""
    if not path.endswith(NOTEBOOK):
        yield from (
            (f"{path}:{number}", line) for number, line in enumerate(text.splitlines(), 1) if not COMMENT.match(line)
        )
        return
    for number, cell in enumerate(_read_code_cells(text), 1):
        lines = (line.lstrip("!% ") for line in cell.splitlines())  # strip the prefixes of cell commands
        yield from ((f"{path}, code cell {number}", line) for line in lines if not COMMENT.match(line))


def _read_code_cells(text: str) -> list[str]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return []  # not a notebook
    cells: Any = document.get("cells") if isinstance(document, dict) else None
    code = [
        cell
        for cell in (cells if isinstance(cells, list) else ())
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]
    return [_read_cell(cell.get("source", "")) for cell in code]


def _read_cell(source: Any) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _list_reached(manifest: Manifest, files: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """List the stages, the files they name, and the files those name; a program in the image may run any of them."""
    reached = [(manifest.source, stage.script or " ".join(stage.argv)) for stage in manifest.stages]
    # Without a manifest, the source is the code
    seen = set() if manifest.source.endswith((NOTEBOOK, *CODE)) else {manifest.source}
    for _, text in reached:  # it grows during the loop
        named = _find_named(text, list(files))
        named += [path for path in files if path.endswith(CODE)] if OWN_PROGRAM.search(text) else []
        for path in named:
            if path not in seen and len(seen) <= MOST_FILES:
                seen.add(path)
                reached.append((path, files[path][:LARGEST].decode("utf-8", "replace")))
    return reached


def _find_named(text: str, paths: Sequence[str]) -> list[str]:
    """Return the app's files that a text names, by path or module name."""
    words = {word.removeprefix("./") for word in WORD.findall(text)}
    words |= {word.removeprefix(folder) for word in words for folder in FOLDERS}
    return [path for path in paths if path in words or path.rpartition("/")[2] in words or _module(path) in words]


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".") if path.endswith(".py") else path
