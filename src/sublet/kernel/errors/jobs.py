"""Errors of jobs: those of old clients, and those at an access point."""

from __future__ import annotations

from sublet.kernel.errors.error import SubletError


class NotSubmitted(SubletError):
    """The job has not been submitted yet."""

    hint = "Call its submit() first, or name the id of one that was."
    exit_code = 2


class AlreadySubmitted(SubletError):
    """The job {job} is already submitted or in the queue."""

    hint = "Make another one; `sublet again` runs the same once more."
    status = 409


class TooManyDrafts(SubletError):
    """You have {most} jobs that were never submitted, which is the limit."""

    hint = "Submit or delete some of them; old ones are deleted automatically."
    status = 409


class NoGlobus(SubletError):
    """Nothing here moves data by Globus."""

    hint = "Name data by an https address, and fetch results with `sublet result SESSION --out DIR`."
    status = 403


class BadJobSet(SubletError):
    """{file} can't be read as a job set: {why}."""

    hint = "A job set has a name, one iterator and jobs, as `htcondor jobset submit` reads them."
    status = 400
    exit_code = 2


class NotAtAccessPoint(SubletError):
    """Submit jobs on the machine of their access point, not through a service elsewhere."""

    hint = "Run this command there, without SUBLET_URL."
    status = 409


class SubmitFailed(SubletError):
    """{program} ended with code {code}; see its output above."""

    hint = "Nothing else was changed."
    status = 409


class NotMarkable(SubletError):
    """{jobs} can't be changed: {why}"""

    hint = "`sublet job list` shows your jobs and the annexes that they name."
    status = 409
