"""The objects of a service in a namespace, kept up to date by watches instead of polling."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.platforms.kubernetes.api import ApiServer, ListExpired, Object, ObjectMissing
from sublet.platforms.kubernetes.names import SESSION, select
from sublet.platforms.recent import RecentKeys

AGAIN = 1.0  # seconds to wait after a failed watch
SLOWEST = 30.0
LATE = 600.0  # seconds after which no older answer is expected any more


class WatchedObjects:
    """All of our objects of one kind, as the server last reported them."""

    def __init__(
        self, api: ApiServer, kind: str, owner: str, tell: Callable[[str], None], pause: float = AGAIN
    ) -> None:
        """Set up; `tell` is called with the label of each session that has changed."""
        self._api, self._kind, self._query = api, kind, {"labelSelector": select(owner)}
        self._tell, self._pause = tell, pause
        self._objects: dict[str, Object] = {}
        self._of_session: dict[str, set[str]] = {}  # the label of a session → the uids of its objects
        self._removed = RecentKeys(LATE)  # the uids of deleted objects, so that an older answer doesn't bring them back
        self._listed = 0  # the version of the list that a watch follows
        self.is_live = False  # whether a watch reports everything that happens now

    def find(self, label: str) -> list[Object]:
        """Return the objects of one session."""
        return [self._objects[uid] for uid in self._of_session.get(label, ())]

    def put(self, changed: Object) -> None:
        """Store an object from an answer, unless a watch has reported a newer version."""
        uid = changed["metadata"]["uid"]
        known = self._objects.get(uid)
        if uid not in self._removed and (known is None or _version(known) <= _version(changed)):
            self._objects[uid] = changed
            self._of_session.setdefault(_label(changed), set()).add(uid)

    def drop(self, uid: str) -> None:
        """Forget a deleted object."""
        self._removed.note(uid)
        if gone := self._objects.pop(uid, None):
            self._of_session[_label(gone)].discard(uid)
            if not self._of_session[_label(gone)]:
                del self._of_session[_label(gone)]

    async def refresh(self) -> None:
        """List all objects; an answer that is older than what a watch has reported changes nothing."""
        answer = await self._list()
        if not self.is_live and _version(answer) >= self._listed:
            self._take_list(answer)

    async def _list(self) -> Object:
        return await self._api.list(self._api.path_of(self._kind), **self._query)

    def _take_list(self, answer: Object) -> None:
        objects = {each["metadata"]["uid"]: each for each in answer.get("items") or ()}
        changed = [uid for uid in {*objects, *self._objects} if objects.get(uid) != self._objects.get(uid)]
        before, self._objects, self._of_session = self._objects, {}, {}
        for listed in objects.values():
            self.put(listed)
        for uid in changed:
            self._tell_of(objects.get(uid) or before[uid])

    def _tell_of(self, changed: Object) -> None:
        self._tell(_label(changed))

    async def run(self) -> None:
        """Watch, and start again whenever a watch ends, until cancelled."""
        pause, logged = self._pause, ""
        while True:
            began = time.monotonic()
            try:
                answer = await self._list()
                self._take_list(answer)
                self._listed = _version(answer)
                await self._watch(str(answer["metadata"].get("resourceVersion", "")))
            except (SubletError, ObjectMissing) as error:
                if (why := str(error)) != logged:  # the same failure again and again is one line
                    log.warning("watch.failed", platform=self._api.platform, kind=self._kind, why=why)
                logged = why
            self.is_live = False
            if time.monotonic() - began > SLOWEST:  # it worked for a while, so that this is a new failure
                pause, logged = self._pause, ""
            await asyncio.sleep(pause)
            pause = min(2 * pause, SLOWEST)

    async def _watch(self, version: str) -> None:
        """Follow the list from a version on, by one watch after another.

        Return when the version has expired, or a watch ends as soon as it has begun.
        """
        with suppress(ListExpired):
            while True:
                began = time.monotonic()
                async with self._api.watch(
                    self._api.path_of(self._kind), resourceVersion=version, **self._query
                ) as events:
                    self.is_live = True
                    async for event in events:
                        version = event["object"]["metadata"]["resourceVersion"]
                        self._take(event)
                if time.monotonic() - began < self._pause:
                    return

    def _take(self, event: Object) -> None:
        changed, kind = event["object"], event["type"]
        if kind == "DELETED":
            self.drop(changed["metadata"]["uid"])
        elif kind != "BOOKMARK":
            self.put(changed)
        if kind != "BOOKMARK":
            self._tell_of(changed)


def _label(known: Object) -> str:
    return str(known["metadata"]["labels"].get(SESSION, ""))


def _version(known: Object) -> int:
    """Return an object's version: opaque by the API's definition, but a growing number in every real server."""
    text = str(known["metadata"].get("resourceVersion", "0"))
    return int(text) if text.isdigit() else 0
