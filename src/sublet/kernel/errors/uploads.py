"""Errors of uploads: quotas, resuming, and use by sessions."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class BadUpload(SubletError):
    """This can't be uploaded: {why}"""

    hint = "docs/reference/uploads.md describes the protocol."
    status = 400
    exit_code = 2


class UploadQuotaFull(SubletError):
    """There is no room for {size} more: {why}."""

    hint = "Remove uploads that you don't need any more: sublet upload list, sublet upload remove NAME."
    status = 413


class WrongOffset(SubletError):
    """The service has {offset} bytes of this file; the upload can't resume at {wanted}."""

    hint = "Ask for the offset with HEAD, and resume there."
    status = 409


class UploadBusy(SubletError):
    """Someone else is sending this file at the moment."""

    hint = "Wait until that has ended, ask for the offset with HEAD, and resume there."
    status = 423


class WrongChecksum(SubletError):
    """The received data doesn't match its checksum."""

    hint = "It was discarded: send it again."
    status = 460


class UploadInUse(SubletError):
    """The upload {name} is data of sessions that have not started: {sessions}."""

    hint = "Wait until they run, or cancel them; --force removes it anyway, and they will fail."
    status = 409


class UploadPathTaken(SubletError):
    """{path} can't be uploaded, because {other} is there: one would be a folder and the other a file."""

    hint = "Remove that one first, or upload under another name: --name NAME."
    status = 409


class OldTus(SubletError):
    """This endpoint supports tus 1.0.0, not {version}."""

    hint = "Send the header Tus-Resumable: 1.0.0."
    status = 412
