"""Inputs that jobs share: which files of a job are worth to lie on a system once, and how the job then names them.

A job is rewritten so that it takes the copy where its slot's system has one, and is sent the file everywhere else.
"""

from __future__ import annotations

import hashlib
import os.path
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sublet.annexes.model.annex import JOB_KEPT, JOB_TARGET, SLOT_LEASE

LARGE = 16 << 20  # bytes from which on an input is worth it; an image always is
JOB_INPUTS = "SubletInputs"  # in a job: whether it was looked at: "none" of its files are shared, or "shared"
JOB_READY = "SubletReady"  # in a job: the leases whose systems have what it shares, or can't have it
JOB_UNTIL = "SubletUntil"  # in a job: when it waits for that no longer, in seconds since the epoch
JOB_CONTENT = "SubletContent"  # in a job: the content of what it shares, when it was told where copies are
JOB_LOOKED = "SubletLooked"  # in a job: when its files were last seen to have that content, in seconds since the epoch
JOB_IMAGE = "SubletImage"  # in a job: its image, as it was submitted
JOB_FILES = "SubletFiles"  # in a job: its inputs, as they were submitted
JOB_PROGRAM = "SubletProgram"  # in a job: its executable, as it was submitted
JOB_REMAPS = "SubletRemaps"  # in a job: how its inputs are renamed, as it was submitted
JOB_PULLED = "SubletPulled"  # in a job: why its image, which is in a registry, is pulled by its node
FAR = "SubletFarMachine"  # in a slot: that its node is behind a spool, so that copies can't be seen from here
USEFUL = f"TARGET.{FAR} =?= undefined"
ABLE = (
    f"{USEFUL} && TARGET.HasTransferInputRemaps =?= true"
    ' && stringListMember("file", TARGET.HasFileTransferPluginMethods ?: "")'
)
TREE, PROGRAM = "subletdir", "subletfile"  # methods of the plug-in on nodes; HTCondor takes no dash in their names
NOTE, TREE_NOTE = "subletkept", "subletkeptdir"  # methods of a bridge's plug-in, for a node behind a spool
ABLE_FAR = (
    f"TARGET.{FAR} =!= undefined && TARGET.HasTransferInputRemaps =?= true"
    f' && stringListMember("{NOTE}", TARGET.HasFileTransferPluginMethods ?: "")'
)
ABLE_TREES = f'{ABLE} && stringListMember("{TREE}", TARGET.HasFileTransferPluginMethods ?: "")'
PLAIN = re.compile(r"[\w.+-]+")  # a name that can be the end of an address
IN_REGISTRY = re.compile(r"(docker|oras)://[\w.:/@+-]+")  # an image that Apptainer pulls
BY_APPTAINER = "TARGET.HasDocker =!= true"  # a slot that doesn't give such an image to Docker, which takes no file
UNSEEN = 60  # seconds that a job with an image, or large inputs, waits to be looked at, and that a look is good for
PATIENCE = 300  # seconds that it then waits for copies, counted from when its node came up
PULLING = 2400  # the same for an image of a registry, which is pulled and made there
_HEAVY = (
    f"(MY.ContainerImage =!= undefined || MY.{JOB_KEPT} =!= undefined || (MY.TransferInputSizeMB ?: 0) >= {LARGE >> 20}"
    f" || (MY.ExecutableSize ?: 0) >= {LARGE >> 10})"
)
_READY = f'stringListMember(TARGET.{SLOT_LEASE} ?: "", MY.{JOB_READY})'
# A job that began to wait after the last look, be it released or off its node, may have been given new files meanwhile.
_LOOKED = (
    f"(MY.EnteredCurrentStatus < (MY.{JOB_LOOKED} ?: 0) || MY.{JOB_READY} =?= undefined"
    f" || time() > MY.EnteredCurrentStatus + {UNSEEN})"
)
_CERTAIN = f"time() - (MY.{JOB_LOOKED} ?: 0) <= {UNSEEN}"  # else the file itself is sent
_LONG_UP = f"time() - (TARGET.DaemonStartTime ?: 0) > {PATIENCE}"
WAITS = (
    f"(MY.{JOB_TARGET} =?= undefined || (MY.{JOB_INPUTS} =?= undefined"
    f" ? (!{_HEAVY} || time() > (MY.{JOB_UNTIL} ?: (MY.QDate + {UNSEEN})))"
    f" : ((MY.{JOB_READY} =?= undefined || {_READY} || (time() > MY.{JOB_UNTIL} && {_LONG_UP})) && {_LOOKED})))"
)
HAS_IMAGE = f'stringListMember(TARGET.{SLOT_LEASE} ?: "", MY.{JOB_READY} ?: "")'  # of a job that brings none


@dataclass(frozen=True, slots=True)
class NamedInput:
    """What a job says of its inputs, as it was submitted."""

    directory: str  # that its paths are relative to
    image: str = ""  # empty: it has none that is a file
    files: tuple[str, ...] = ()  # and directories
    remaps: str = ""
    program: str = ""  # its executable; empty: it is not sent
    keeps_paths: bool = False  # whether its files lie there as deep as here
    address: str = ""  # of its image, if that is in a registry
    is_session: bool = False  # whether it is a session's: its image alone is shared, and used where it lies

    def path(self, name: str) -> str:
        """The whole path of one of its files."""
        return os.path.join(self.directory, name)

    @property
    def patience(self) -> int:
        """How many seconds it waits for copies."""
        return PULLING if self.address else PATIENCE

    @property
    def candidates(self) -> tuple[str, ...]:
        """Those of its files that are here, and can be named otherwise."""
        names = [name for name in self.files if not _elsewhere(name) and not self._is_placed(name)]
        if self.is_session:
            return tuple(name for name in names if name == self.image)
        is_plain = bool(PLAIN.fullmatch(os.path.basename(self.program))) and not _elsewhere(self.program)
        program = [self.program] if self.program and is_plain else []
        return tuple(dict.fromkeys([*([self.image] if self.image in names else []), *names, *program]))

    def _is_placed(self, name: str) -> bool:
        """Whether the job says itself where it is to lie."""
        renamed = {pair.partition("=")[0].strip() for pair in self.remaps.split(";")}
        deep = self.keeps_paths and "/" in name.rstrip("/") and not name.startswith("/")
        return deep or os.path.basename(name.rstrip("/")) in renamed


def _elsewhere(name: str) -> bool:
    """Whether it is an address, or what can't stand in an expression."""
    return "://" in name or any(sign in name for sign in '$]"\\\n')


def choose_shared(named: NamedInput, sizes: Mapping[str, int], trees: Collection[str] = ()) -> tuple[str, ...]:
    """Which of its files are worth to lie on a system once: the image, and what is large; `trees` are directories."""
    here = [name for name in named.candidates if name in sizes]
    worth = [name for name in here if name == named.image or sizes[name] >= LARGE]
    return tuple(name for name in worth if name not in trees or name not in (named.image, named.program))


def combine_digests(digests: Mapping[str, str]) -> str:
    """One text that stands for the content of all files that a job shares; empty for none."""
    lines = "\n".join(f"{name} {digest}" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode(errors="surrogateescape")).hexdigest()[:32] if lines else ""


@dataclass(frozen=True, slots=True)
class InputCopies:
    """Where one system has a job's shared files, and the leases on it."""

    leases: tuple[str, ...]
    paths: Mapping[str, str]  # name, as the job says it → the copy's path there
    trees: frozenset[str] = frozenset()  # those of the names that are directories


def rewritten(named: NamedInput, copies: Sequence[InputCopies]) -> dict[str, str]:
    """The attributes of a job that takes copies where they are; what holds for its slot is chosen when it starts."""
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
    """The attributes of a session's job: its image doesn't travel where it is kept, also behind a spool."""
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
    """The inputs where copies are: an image is used where it lies, other files are copied by the node itself."""
    kept = [name for name in named.files if not (name == named.image and name in copies.paths)]
    return ",".join(_address(name, copies) if name in copies.paths else name for name in kept)


def _address(name: str, copies: InputCopies) -> str:
    """Where a node finds a copy: a file, or a directory as one archive."""
    return f"{TREE if name in copies.trees else 'file'}://{by_name(copies.paths[name])}"


def _note(name: str, copies: InputCopies) -> str:
    """What is sent to a bridge in the place of a copy."""
    if name not in copies.paths:
        return name
    return f"{TREE_NOTE if name in copies.trees else NOTE}://{by_name(copies.paths[name])}"


def _remaps(named: NamedInput, copies: Sequence[InputCopies]) -> str:
    """What a copy is called there → what the job calls it."""
    names = {
        os.path.basename(by_name(path)): os.path.basename(name)
        for copy in copies
        for name, path in copy.paths.items()
        if name not in (named.program, named.address) and name not in copy.trees
    }
    return ";".join([*([named.remaps] if named.remaps else []), *(f"{there}={here}" for there, here in names.items())])


def by_name(path: str) -> str:
    """The same copy by a name that no other has: `kept/NAME/NAME` beside `kept/NAME/content`."""
    place = os.path.dirname(path)
    return f"{place}/{os.path.basename(place)}"


Choices = Sequence[tuple[Sequence[str], str]]  # leases, and what holds for their slots


def _choose_by_slot(
    choices: Choices, otherwise: str, able: str, more: tuple[str, Choices] = ("", ()), *, certainly: str = _CERTAIN
) -> str:
    """A string that HTCondor chooses when the job is given to a slot, by the lease that the slot is of.

    `able` is what a slot must be for these choices, and `more` has others for slots that are otherwise; `certainly` is
    what tells that a copy is still what it was.
    """
    if not choices:
        return otherwise
    expression = f'"{otherwise}"'
    for condition, pairs in (more, (able, choices)):
        for leases, value in pairs:
            here = f'{condition} && {certainly} && stringListMember(TARGET.{SLOT_LEASE} ?: "", "{",".join(leases)}")'
            expression = f'(({here}) ? "{value}" : {expression})'
    return f"$$([ {expression} ])"
