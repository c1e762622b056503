"""Sessions of several pods, one on each node: none starts before all are there, and the first that fails ends all.

They are the pods of one Indexed Job. Each lays the session out and waits for an order with its number and the address
of the first pod. Only pods that were recorded before get that order: a pod that replaces another never starts.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sublet.booking.model.job import JobState, State
from sublet.booking.model.session import End, EndKind
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable, SubletError
from sublet.kernel.log import log
from sublet.platforms.kubernetes.api import ApiServer, Object, ObjectExists, ObjectMissing
from sublet.platforms.kubernetes.group_states import (
    add_detail,
    choose_pods,
    describe_gathering,
    describe_group_end,
    find_failed,
    is_waiting_for_others,
)
from sublet.platforms.kubernetes.manifests import PodPlace, make_first_secret
from sublet.platforms.kubernetes.names import KEEPER, SESSION, STAGE, label_of, name_of, select
from sublet.platforms.kubernetes.pods import PodFiles
from sublet.platforms.kubernetes.session import PodSession
from sublet.platforms.kubernetes.states import (
    FETCHING,
    FORCED,
    UNCOLLECTED,
    Left,
    Sight,
    describe_end,
    has_begun,
    judge,
    runs,
)

PODS, FAILED, BEGUN = "pods.json", "failed", "begun"  # the started pods; the node that decides; that all have begun
Serve = Callable[[PodSession, Object], Awaitable[None]]


@dataclass(frozen=True)
class PodGroups:
    """Handles sessions of several pods; `serve` sends a pod its files."""

    api: ApiServer
    place: PodPlace
    files: PodFiles
    serve: Serve
    heard: dict[str, set[str]] = field(default_factory=dict)  # session → its pods that got the order to start

    async def look(self, session: PodSession, sight: Sight) -> JobState:
        """Return a session's state now; at its end, its results have been fetched."""
        begun: dict[str, Any] = session.read(PODS) or {}
        pods = choose_pods(sight.pods, begun.get("uids"))
        if not begun:
            return await self._gather(session, pods, sight)
        return await self._attend(session, pods, sight, begun)

    def forget(self, key: str) -> None:
        """Forget the orders to a session's pods, because they are removed."""
        self.heard.pop(key, None)

    # Before all pods are there

    async def _gather(self, session: PodSession, pods: Mapping[int, Object], sight: Sight) -> JobState:
        condition, now = describe_gathering(pods, session.nodes), datetime.now(UTC)
        for pod in pods.values():
            await self.serve(session, pod)
            state = judge(pod, now, self.place.patience)
            if state.state is State.ENDED and session.cancelled_by:
                return describe_end(pod, Left(), session.cancelled_by)
            if state.state is State.ENDED:
                return replace(state, end=add_detail(state.end or End(EndKind.UNKNOWN), condition))
        is_whole = len(pods) == session.nodes and all(is_waiting_for_others(pod) for pod in pods.values())
        if is_whole and sight.job and not session.cancelled_by:
            await self._let_start(session, pods, sight.job)
        return JobState(State.QUEUED, condition=condition)

    async def _let_start(self, session: PodSession, pods: Mapping[int, Object], job: Object) -> None:
        """Record these pods as the session's only ones, and let them start."""
        first = str(pods[0]["status"]["podIP"])
        uids = {str(number): pod["metadata"]["uid"] for number, pod in pods.items()}
        if session.prints_to_log:
            await self._put_first(make_first_secret(session.key, self.place.owner, job["metadata"]["uid"], first))
        session.note(PODS, json.dumps({"first": first, "uids": uids}))
        session.note("pod", uids["0"])
        await self._tell(session, pods, first)

    async def _put_first(self, secret: Object) -> None:
        """Create the Secret with the first pod's address; an interrupted try may have left another."""
        try:
            await self.api.create(self.api.path_of("secrets"), secret)
        except ObjectExists:
            await self.api.replace(self.api.path_of("secrets", secret["metadata"]["name"]), secret)

    async def _tell(self, session: PodSession, pods: Mapping[int, Object], first: str) -> None:
        """Order the pods that still wait to start; those that can't be reached now are ordered at the next look."""
        for number, pod in pods.items():
            uid = pod["metadata"]["uid"]
            is_waiting = runs(pod, STAGE) and uid not in self.heard.get(session.key, ())
            if is_waiting and await self._order(session, pod, "node", f"{number} {first}", STAGE):
                self.heard.setdefault(session.key, set()).add(uid)

    async def _order(self, session: PodSession, pod: Object, name: str, text: str, container: str) -> bool:
        try:
            await self.files.order(pod["metadata"]["name"], name, text, container)
        except (SubletError, ObjectMissing) as error:  # it is tried again at the next look
            log.warning("kubernetes.unordered", platform=self.api.platform, session=session.key, why=str(error))
            return False
        return True

    # While they run

    async def _attend(
        self, session: PodSession, pods: Mapping[int, Object], sight: Sight, begun: Mapping[str, Any]
    ) -> JobState:
        if len(pods) < session.nodes:
            pods = await self._find_hidden(session, begun)
        await self._tell(session, pods, begun["first"])
        await self._note_begin(session, pods)
        await self._extend(session, pods)
        now = datetime.now(UTC)
        states = {number: judge(pod, now, self.place.patience) for number, pod in pods.items()}
        failed = self._decide(session, states)
        running = [state for state in states.values() if state.state is not State.ENDED]
        started = min((state.started for state in states.values() if state.started), default=None)
        if failed is None and running:
            return JobState(State.RUNNING if started else State.QUEUED, started=started)
        if running and session.age(FAILED) < self.place.grace.total_seconds() + FORCED:
            await self._stop(session, pods)
            why = f"node {failed} has ended, and the others are being stopped"
            return JobState(State.RUNNING, started=started, condition=why)
        return await self._finish(session, pods, states, sight, failed)

    async def _find_hidden(self, session: PodSession, begun: Mapping[str, Any]) -> Mapping[int, Object]:
        """Return a session's pods, asked for now, so that none counts as lost because a watch is behind."""
        query = {"labelSelector": f"{select(self.place.owner)},{SESSION}={label_of(session.key)}"}
        listed = (await self.api.list(self.api.path_of("pods"), **query)).get("items") or []
        return choose_pods(listed, begun["uids"])

    async def _note_begin(self, session: PodSession, pods: Mapping[int, Object]) -> None:
        """Delete the session's Secret once all pods have begun."""
        if not session.read_note(BEGUN) and all(has_begun(pod) for pod in pods.values()):
            await self.api.delete(self.api.path_of("secrets", name_of(session.key)))
            session.note(BEGUN, "all")

    async def _extend(self, session: PodSession, pods: Mapping[int, Object]) -> None:
        until = session.read_note("until")
        keepers = [pod for pod in pods.values() if runs(pod, KEEPER)]
        if not until or until == session.read_note("until.sent") or len(keepers) < session.nodes:
            return
        if all([await self._order(session, pod, "until", until, KEEPER) for pod in keepers]):
            session.note("until.sent", until)

    def _decide(self, session: PodSession, states: Mapping[int, JobState]) -> int | None:
        """Return the node whose end counts, recorded before others are stopped; None if none has failed."""
        if known := session.read_note(FAILED):
            return int(known)
        failed = find_failed(states, session.nodes)
        if failed is not None:
            session.note(FAILED, str(failed))
        return failed

    async def _stop(self, session: PodSession, pods: Mapping[int, Object]) -> bool:
        """Have each keeper stop its program, even one that is about to start; return whether any could be told."""
        is_heard = False
        for pod in pods.values():
            if container := next((name for name in (KEEPER, STAGE) if runs(pod, name)), ""):
                is_heard |= await self._order(session, pod, "cancel", session.cancelled_by or "sublet", container)
        return is_heard

    async def stop(self, session: PodSession, sight: Sight) -> bool:
        """Stop a session's started pods; return False if none was started or none could be told."""
        begun = session.read(PODS)
        return bool(begun) and await self._stop(session, choose_pods(sight.pods, begun["uids"]))

    # Ending

    async def _finish(
        self,
        session: PodSession,
        pods: Mapping[int, Object],
        states: Mapping[int, JobState],
        sight: Sight,
        failed: int | None,
    ) -> JobState:
        """Fetch the results of all pods, and return how the session ended."""
        left: dict[int, Left] = {}
        troubles: list[str] = []
        for number, pod in pods.items():
            if not runs(pod, KEEPER):
                troubles += [f"the pod of node {number} has ended"] if has_begun(pod) else []
                continue
            try:
                left[number] = await self.files.collect(session, pod["metadata"]["name"], number)
            except PlatformUnreachable as error:
                ended = states[number].ended or datetime.now(UTC)
                if datetime.now(UTC) - ended < self.place.patience:
                    return JobState(State.RUNNING, condition=FETCHING.format(why=error.message))
                troubles.append(error.message)
            except (PlatformRefused, ObjectMissing) as error:
                troubles.append(str(error))
        state = describe_group_end(pods, states, sight, failed, left, session.cancelled_by)
        if troubles and state.end:
            state = replace(state, end=add_detail(state.end, UNCOLLECTED.format(why="; ".join(troubles))))
        return state
