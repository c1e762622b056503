"""Named points where a test can kill the process: `SUBLET_CRASH_AT=submit.after` ends it there without cleanup."""

from __future__ import annotations

from sublet.platforms.local.shim.faults import point as point

POINTS = (
    "accept.before",
    "accept.after",
    "waiting.after",
    "preparing.after",
    "stage.after",
    "submit.before",
    "submit.after",
    "running.after",
    "ended.before",
    "releasing.after",
    "final.before",
    "final.after",
)
LEASE_POINTS = ("lease.recorded", "lease.offered", "lease.sent", "accept.before", "accept.after", "lease.accepted")
SENDING_POINTS = ("send.before", "send.between", "send.after")
UPLOAD_POINTS = ("upload.begun", "upload.written", "upload.finished")
LENGTHEN_POINTS = ("lengthen.before", "lengthen.after")
BROKER_POINTS = ("passing.recorded", "passing.answered", "submit.before", "submit.after", "outbox.given_back")
REJECT_POINTS = ("reject.before", "reject.after")
CANCEL_POINTS = ("cancel.before", "cancel.after")
RESERVATION_POINTS = ("reserve.before", "reserve.after", "give_up.before", "give_up.after")
HOOK_POINTS = ("hook.spread", "hook.claimed", "hook.sent")
