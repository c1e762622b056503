"""Inputs that jobs share: which files to copy to a system once, and how a job then names them.

A job is rewritten so that it uses the copy where its slot's system has one, and is sent the file everywhere else.
"""

from __future__ import annotations

import hashlib
import os.path
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sublet.annexes.model.annex import JOB_KEPT, JOB_TARGET, SLOT_LEASE

LARGE = 16 << 20  # bytes from which an input is shared; an image always is
JOB_INPUTS = "SubletInputs"  # in a job: "shared" or "none" of its files are shared; undefined before it was examined
JOB_READY = "SubletReady"  # in a job: the leases whose systems have its shared files, or can't have them
JOB_UNTIL = "SubletUntil"  # in a job: until when it waits for them, in seconds since the epoch
JOB_CONTENT = "SubletContent"  # in a job: the content of its shared files when it was told where copies are
JOB_LOOKED = "SubletLooked"  # in a job: when its files were last seen to have that content, in epoch seconds
JOB_IMAGE = "SubletImage"  # in a job: its image, as submitted
JOB_FILES = "SubletFiles"  # in a job: its inputs, as submitted
JOB_PROGRAM = "SubletProgram"  # in a job: its executable, as submitted
JOB_REMAPS = "SubletRemaps"  # in a job: how its inputs are renamed, as submitted
JOB_PULLED = "SubletPulled"  # in a job: why its registry image is pulled by its node
FAR = "SubletFarMachine"  # in a slot: that its node is behind a spool, so that copies aren't visible from here
USEFUL = f"TARGET.{FAR} =?= undefined"
ABLE = (
    f"{USEFUL} && TARGET.HasTransferInputRemaps =?= true"
    ' && stringListMember("file", TARGET.HasFileTransferPluginMethods ?: "")'
)
TREE, PROGRAM = "subletdir", "subletfile"  # methods of the plug-in on nodes; HTCondor allows no dash in their names
NOTE, TREE_NOTE = "subletkept", "subletkeptdir"  # methods of a bridge's plug-in, for a node behind a spool
ABLE_FAR = (
    f"TARGET.{FAR} =!= undefined && TARGET.HasTransferInputRemaps =?= true"
    f' && stringListMember("{NOTE}", TARGET.HasFileTransferPluginMethods ?: "")'
)
ABLE_TREES = f'{ABLE} && stringListMember("{TREE}", TARGET.HasFileTransferPluginMethods ?: "")'
PLAIN = re.compile(r"[\w.+-]+")  # a name that can be the end of an address
IN_REGISTRY = re.compile(r"(docker|oras)://[\w.:/@+-]+")  # an image that Apptainer pulls
BY_APPTAINER = "TARGET.HasDocker =!= true"  # a slot that doesn't give such an image to Docker, which can't use a file
UNSEEN = 60  # seconds that a job with an image or large inputs waits to be examined, and for which a check is valid
PATIENCE = 300  # seconds that it then waits for copies, from when its node came up
PULLING = 2400  # the same for a registry image, which is pulled and converted there
_HEAVY = (
    f"(MY.ContainerImage =!= undefined || MY.{JOB_KEPT} =!= undefined || (MY.TransferInputSizeMB ?: 0) >= {LARGE >> 20}"
    f" || (MY.ExecutableSize ?: 0) >= {LARGE >> 10})"
)
_READY = f'stringListMember(TARGET.{SLOT_LEASE} ?: "", MY.{JOB_READY})'
# A job that began to wait after the last check, because it was released or stopped, may have new files since.
_LOOKED = (
    f"(MY.EnteredCurrentStatus < (MY.{JOB_LOOKED} ?: 0) || MY.{JOB_READY} =?= undefined"
    f" || time() > MY.EnteredCurrentStatus + {UNSEEN})"
)
_CERTAIN = f"time() - (MY.{JOB_LOOKED} ?: 0) <= {UNSEEN}"  # otherwise the file itself is sent
_LONG_UP = f"time() - (TARGET.DaemonStartTime ?: 0) > {PATIENCE}"
WAITS = (
    f"(MY.{JOB_TARGET} =?= undefined || (MY.{JOB_INPUTS} =?= undefined"
    f" ? (!{_HEAVY} || time() > (MY.{JOB_UNTIL} ?: (MY.QDate + {UNSEEN})))"
    f" : ((MY.{JOB_READY} =?= undefined || {_READY} || (time() > MY.{JOB_UNTIL} && {_LONG_UP})) && {_LOOKED})))"
)
WAITS_FOR = frozenset(re.findall(r"\b(?:MY|TARGET)\.(\w+)", WAITS))  # the attributes that it depends on
HAS_IMAGE = f'stringListMember(TARGET.{SLOT_LEASE} ?: "", MY.{JOB_READY} ?: "")'  # for a job that sends no image


@dataclass(frozen=True, slots=True)
class NamedInput:
    """A job's inputs, as submitted."""

    directory: str  # to which its paths are relative
    image: str = ""  # empty: it has no image file
    files: tuple[str, ...] = ()  # and directories
    remaps: str = ""
    program: str = ""  # its executable; empty: it isn't sent
    keeps_paths: bool = False  # whether relative paths are kept on the node
    address: str = ""  # of its image, if that is in a registry
    is_session: bool = False  # whether it belongs to a session: only its image is shared, and is used in place

    def path(self, name: str) -> str:
        """Return the full path of one of the job's files."""
        return os.path.join(self.directory, name)

    @property
    def patience(self) -> int:
        """How many seconds the job waits for copies."""
        return PULLING if self.address else PATIENCE

    @property
    def candidates(self) -> tuple[str, ...]:
        """The job's local files that can be given another name."""
        names = [name for name in self.files if not _elsewhere(name) and not self._is_placed(name)]
        if self.is_session:
            return tuple(name for name in names if name == self.image)
        is_plain = bool(PLAIN.fullmatch(os.path.basename(self.program))) and not _elsewhere(self.program)
        program = [self.program] if self.program and is_plain else []
        return tuple(dict.fromkeys([*([self.image] if self.image in names else []), *names, *program]))

    def _is_placed(self, name: str) -> bool:
        """Whether the job itself determines where the file goes."""
        renamed = {pair.partition("=")[0].strip() for pair in self.remaps.split(";")}
        deep = self.keeps_paths and "/" in name.rstrip("/") and not name.startswith("/")
        return deep or os.path.basename(name.rstrip("/")) in renamed


def _elsewhere(name: str) -> bool:
    """Whether a name is an address, or contains characters that can't be used in an expression."""
    return "://" in name or any(sign in name for sign in '$]"\\\n')


def choose_shared(named: NamedInput, sizes: Mapping[str, int], trees: Collection[str] = ()) -> tuple[str, ...]:
    """Choose the job's files to copy to the system's cache: its image, and large files; `trees` are directories."""
    here = [name for name in named.candidates if name in sizes]
    worth = [name for name in here if name == named.image or sizes[name] >= LARGE]
    return tuple(name for name in worth if name not in trees or name not in (named.image, named.program))


def combine_digests(digests: Mapping[str, str]) -> str:
    """Return a digest of all files that a job shares; empty if there are none."""
    lines = "\n".join(f"{name} {digest}" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode(errors="surrogateescape")).hexdigest()[:32] if lines else ""


@dataclass(frozen=True, slots=True)
class InputCopies:
    """Where one system has copies of a job's shared files, and the leases on that system."""

    leases: tuple[str, ...]
    paths: Mapping[str, str]  # the job's name for it → the copy's path there
    trees: frozenset[str] = frozenset()  # the names that are directories


def rewritten(named: NamedInput, copies: Sequence[InputCopies]) -> dict[str, str]:
    """Return the attributes of a job that uses copies where they exist; HTCondor evaluates them for the job's slot."""
    there = [copy for copy in copies if copy.leases and copy.paths and not any(map(_elsewhere, copy.paths.values()))]
    in_place = (named.image, named.address)
    able = ABLE if any(name not in in_place for each in there for name in each.paths) else USEFUL
    able = ABLE_TREES if any(each.trees or named.program in each.paths for each in there) else able
    if named.is_session:
        return _rewrite_session(named, there)
    with_files = [each for each in there if set(each.paths) - {named.address}]
    inputs = [(each.leases, _files(named, each)) for each in with_files]
    notes = [(each.leases, ",".join(_note(name, each) for name in named.files)) for each in with_files]
    whole = ",".join(named.files)
    changes = {"TransferInput": _choose_by_slot(inputs, whole, able, (ABLE_FAR, notes))}
    changes["TransferInputRemaps"] = _remaps(named, there)
    if named.image:
        images = [(each.leases, each.paths[named.image]) for each in there if named.image in each.paths]
        changes["ContainerImage"] = _choose_by_slot(images, named.image, able)
    if named.address:
        pulled = [(each.leases, each.paths[named.address]) for each in there if named.address in each.paths]
        changes["ContainerImage"] = _choose_by_slot(pulled, named.address, BY_APPTAINER)
    if named.program:
        name = os.path.basename(named.program)
        kept = [(each.leases, each.paths[named.program]) for each in there if named.program in each.paths]
        programs, noted = (
            [(leases, f"{method}://{os.path.dirname(path)}/{name}") for leases, path in kept]
            for method in (PROGRAM, NOTE)
        )
        changes["Cmd"] = _choose_by_slot(programs, named.program, able, (ABLE_FAR, noted))
    return changes


def _rewrite_session(named: NamedInput, there: Sequence[InputCopies]) -> dict[str, str]:
    """Return the attributes of a session's job: its image isn't sent where it is kept, also behind a spool."""
    if named.address:
        streamed = [(each.leases, each.paths[named.address]) for each in there if named.address in each.paths]
        return {JOB_KEPT: _choose_by_slot(streamed, named.address, "true", certainly="true")}
    with_image = [each for each in there if named.image in each.paths]
    images = [(each.leases, each.paths[named.image]) for each in with_image]
    inputs = [(each.leases, _files(named, each)) for each in with_image]
    return {
        "TransferInput": _choose_by_slot(inputs, ",".join(named.files), "true"),
        JOB_KEPT: _choose_by_slot(images, named.image, "true"),
    }


def _files(named: NamedInput, copies: InputCopies) -> str:
    """Return the inputs for a slot with copies: an image is used in place, other files are copied by the node."""
    kept = [name for name in named.files if not (name == named.image and name in copies.paths)]
    return ",".join(_address(name, copies) if name in copies.paths else name for name in kept)


def _address(name: str, copies: InputCopies) -> str:
    """Return the address of a copy for a node: of a file, or of a directory's archive."""
    return f"{TREE if name in copies.trees else 'file'}://{by_name(copies.paths[name])}"


def _note(name: str, copies: InputCopies) -> str:
    """Return what is sent to a bridge in place of a file."""
    if name not in copies.paths:
        return name
    return f"{TREE_NOTE if name in copies.trees else NOTE}://{by_name(copies.paths[name])}"


def _remaps(named: NamedInput, copies: Sequence[InputCopies]) -> str:
    """Return HTCondor's remaps from the names of copies to the job's names."""
    names = {
        os.path.basename(by_name(path)): os.path.basename(name)
        for copy in copies
        for name, path in copy.paths.items()
        if name not in (named.program, named.address) and name not in copy.trees
    }
    return ";".join([*([named.remaps] if named.remaps else []), *(f"{there}={here}" for there, here in names.items())])


def by_name(path: str) -> str:
    """Return the path of the same copy under a unique name: `kept/NAME/NAME` instead of `kept/NAME/content`."""
    place = os.path.dirname(path)
    return f"{place}/{os.path.basename(place)}"


Choices = Sequence[tuple[Sequence[str], str]]  # leases, and the value for their slots


def _choose_by_slot(
    choices: Choices, otherwise: str, able: str, more: tuple[str, Choices] = ("", ()), *, certainly: str = _CERTAIN
) -> str:
    """Return a string expression that HTCondor evaluates when the job gets a slot, by the slot's lease.

    `able` is the condition that a slot must meet for the choices; `more` has a condition and choices for other slots.
    `certainly` is the condition under which a copy is still current.
    """
    if not choices:
        return otherwise
    expression = f'"{otherwise}"'
    for condition, pairs in (more, (able, choices)):
        for leases, value in pairs:
            here = f'{condition} && {certainly} && stringListMember(TARGET.{SLOT_LEASE} ?: "", "{",".join(leases)}")'
            expression = f'(({here}) ? "{value}" : {expression})'
    return f"$$([ {expression} ])"
