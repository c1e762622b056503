"""What a service has in a namespace, kept up to date by watches: nobody asks again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.platforms.kubernetes.api import ApiServer, ListExpired, Object, ObjectMissing
from sublet.platforms.kubernetes.names import SESSION, select

AGAIN = 1.0  # seconds after a watch that failed
SLOWEST = 30.0


class WatchedObjects:
    """All objects of one kind that are ours, as the server last told."""

    def __init__(
        self, api: ApiServer, kind: str, owner: str, tell: Callable[[str], None], pause: float = AGAIN
    ) -> None:
        """`tell` is called with the label of each session of which something has changed."""
        self._api, self._kind, self._query = api, kind, {"labelSelector": select(owner)}
        self._tell, self._pause = tell, pause
        self._objects: dict[str, Object] = {}
        self._of_session: dict[str, set[str]] = {}  # the label of a session → the uids of its objects
        self._removed: set[str] = set()  # the uids of those that are gone, lest an older answer brings them back
        self._listed = 0  # the version of the list that a watch follows
        self.is_live = False  # whether a watch tells all that happens now

    def find(self, label: str) -> list[Object]:
        """Those of one session."""
        return [self._objects[uid] for uid in self._of_session.get(label, ())]

    def put(self, changed: Object) -> None:
        """Take in what an answer said of an object; a watch that knows more is not overruled."""
        uid = changed["metadata"]["uid"]
        known = self._objects.get(uid)
        if uid not in self._removed and (known is None or _version(known) <= _version(changed)):
            self._objects[uid] = changed
            self._of_session.setdefault(_label(changed), set()).add(uid)

    def drop(self, uid: str) -> None:
        """Forget one that is gone."""
        self._removed.add(uid)
        if gone := self._objects.pop(uid, None):
            self._of_session[_label(gone)].discard(uid)

    async def refresh(self) -> None:
        """List all of them; an answer older than what a watch has told, or begins with, overrules nothing."""
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
        """Watch, and begin anew whenever a watch ends; until it is stopped."""
        pause = self._pause
        while True:
            try:
                answer = await self._list()
                self._take_list(answer)
                self._listed = _version(answer)
                pause = self._pause
                await self._watch(str(answer["metadata"].get("resourceVersion", "")))
            except (SubletError, ObjectMissing) as error:
                log.warning("watch.failed", platform=self._api.platform, kind=self._kind, why=str(error))
            self.is_live = False
            await asyncio.sleep(pause)
            pause = min(2 * pause, SLOWEST)

    async def _watch(self, version: str) -> None:
        """Follow the list from a version on, by one watch after another, until the server has forgotten it."""
        with suppress(ListExpired):
            while True:
                async with self._api.watch(
                    self._api.path_of(self._kind), resourceVersion=version, **self._query
                ) as events:
                    self.is_live = True
                    async for event in events:
                        version = event["object"]["metadata"]["resourceVersion"]
                        self._take(event)

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
    """Versions are opaque by the letter of the API, and numbers that grow in every server there is."""
    text = str(known["metadata"].get("resourceVersion", "0"))
    return int(text) if text.isdigit() else 0
