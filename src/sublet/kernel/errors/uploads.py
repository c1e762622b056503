"""Errors of uploads: quotas, resuming, and use by sessions."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class BadUpload(SubletError):
    """This can't be uploaded: {why}"""

    hint = "docs/reference/uploads.md says what is sent, and how."
    status = 400
    exit_code = 2


class UploadQuotaFull(SubletError):
    """There is no room for {size} more: {why}."""

    hint = "Remove uploads that you don't need any more: sublet upload list, sublet upload remove NAME."
    status = 413


class WrongOffset(SubletError):
    """{offset} bytes of this file are here; it can't be gone on with at {wanted}."""

    hint = "Ask where it stopped, with HEAD, and go on there."
    status = 409


class UploadBusy(SubletError):
    """Someone else is sending this file at the moment."""

    hint = "Wait until that has ended, ask where it stopped, and go on there."
    status = 423


class WrongChecksum(SubletError):
    """What came does not have the checksum that it was sent with."""

    hint = "It was not kept: send it again."
    status = 460


class UploadInUse(SubletError):
    """The upload {name} is data of sessions that have not started: {sessions}."""

    hint = "Wait until they run, or cancel them; --force removes it all the same, and they will fail."
    status = 409


class UploadPathTaken(SubletError):
    """{path} can't be uploaded, because {other} is there: one would be a folder and the other a file."""

    hint = "Remove that one first, or upload under another name: --name NAME."
    status = 409


class OldTus(SubletError):
    """This address speaks version 1.0.0 of tus, and not {version}."""

    hint = "Send the header Tus-Resumable: 1.0.0."
    status = 412
