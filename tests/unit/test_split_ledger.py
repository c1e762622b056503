"""What the relay knows: who is alive, what may still be delivered, and what is void."""

from __future__ import annotations

import pytest

from sublet.annexes.split.ledger import GONE, AttemptStage, Ledger, LedgerLink, OpenAttempt

DEAD, GRACE = 8.0, 120.0


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger(2, DEAD, GRACE, LedgerLink(False, 0, 0))
    made.note_connected(0)
    return made


def beats(ledger: Ledger, number: int, now: float, epoch: str = "e1") -> None:
    ledger.note_heard(now)
    ledger.beat(number, {"epoch": epoch, "node": f"c{number}", "runs": []}, now)


def given(ledger: Ledger, name: str = "slot1_1-7.aa", node: int = 0) -> OpenAttempt:
    return ledger.submit(OpenAttempt(name, name.rpartition(".")[0], node, job="12.0"))


def test_a_node_that_was_never_seen_is_neither_alive_nor_dead(ledger: Ledger) -> None:
    assert ledger.alive(0, 1000) is None
    assert "SubletFarAlive = undefined" in ledger.probe(0, 1000, 5)
    assert "SubletFarReady = False" in ledger.probe(0, 1000, 5)


def test_a_node_lives_as_long_as_it_beats_while_the_agent_talks(ledger: Ledger) -> None:
    beats(ledger, 0, 10)
    ledger.note_heard(10 + DEAD)
    assert ledger.alive(0, 10 + DEAD)
    assert "SubletFarReady = True" in ledger.probe(0, 10 + DEAD, 5)
    ledger.note_heard(10 + DEAD + 0.1)
    assert ledger.alive(0, 10 + DEAD + 0.1) is False


def test_a_silent_agent_says_nothing_about_a_node(ledger: Ledger) -> None:
    beats(ledger, 0, 10)
    assert ledger.alive(0, 10 + 5 * DEAD)
    ledger.cut(15)
    assert ledger.alive(0, 15 + GRACE)
    assert "SubletFarReady = False" in ledger.probe(0, 20, 5)
    assert ledger.alive(0, 15 + GRACE + 0.1) is False


def test_after_a_new_link_every_node_has_time_to_be_heard(ledger: Ledger) -> None:
    beats(ledger, 0, 10)
    ledger.cut(15)
    ledger.note_connected(100)
    assert ledger.alive(0, 100)
    ledger.note_heard(100 + DEAD + 0.1)
    assert ledger.alive(0, 110) is False


def test_a_node_of_before_a_restart_is_dead_only_once_it_had_time_to_be_heard() -> None:
    ledger = Ledger(2, DEAD, GRACE, LedgerLink(False, 0, 0), known={0})
    assert ledger.alive(0, 100) is None
    ledger.note_connected(100)
    assert ledger.alive(0, 100 + DEAD) is None
    assert ledger.alive(0, 100 + DEAD + 0.1) is False
    beats(ledger, 0, 120)
    assert ledger.alive(0, 120)


def test_a_dead_node_is_fenced_once_and_what_it_had_is_lost(ledger: Ledger) -> None:
    beats(ledger, 0, 10)
    attempt = given(ledger)
    ledger.note_stored(attempt.name)
    ledger.note_heard(30)
    assert [node.name for node in ledger.bury(30)] == ["c0"]
    assert ledger.bury(30) == []
    assert ledger.orders == [{"op": "fence", "epoch": "e1"}]
    assert attempt.stage is AttemptStage.LOST
    assert not ledger.accepts(attempt.name)
    assert ledger.refused == {"lost": 1}


def test_a_woken_node_is_alive_again_only_under_a_new_epoch(ledger: Ledger) -> None:
    beats(ledger, 0, 10)
    ledger.note_heard(30)
    ledger.bury(30)
    beats(ledger, 0, 31)
    assert ledger.alive(0, 31) is False
    beats(ledger, 0, 32, "e2")
    assert ledger.alive(0, 32)


def test_a_result_is_delivered_once(ledger: Ledger) -> None:
    attempt = given(ledger)
    assert ledger.note_stored(attempt.name)
    assert not ledger.note_stored(attempt.name)
    assert ledger.accepts(attempt.name)
    assert ledger.note_delivered(attempt.name) is attempt
    assert ledger.note_delivered(attempt.name) is None
    assert not ledger.accepts(attempt.name)
    assert not ledger.accepts("slot1_1-7.never")


def test_a_result_may_overtake_the_word_that_it_was_stored(ledger: Ledger) -> None:
    attempt = given(ledger)
    assert ledger.accepts(attempt.name)
    assert ledger.note_delivered(attempt.name) is attempt


def test_what_was_revoked_is_killed_on_every_new_link_and_never_delivered(ledger: Ledger) -> None:
    attempt = given(ledger)
    ledger.note_stored(attempt.name)
    assert ledger.revoke("slot1_1-7") == [attempt]
    assert ledger.revoke("slot1_1-7") == []
    assert ledger.orders == [{"op": "kill", "attempt": attempt.name, "node": 0}]
    assert not ledger.accepts(attempt.name)
    ledger.forget(attempt.name)
    assert ledger.orders == []


def test_what_was_revoked_is_settled_once_its_node_is_heard_without_it(ledger: Ledger) -> None:
    attempt = given(ledger)
    ledger.note_stored(attempt.name)
    ledger.revoke("slot1_1-7")
    for _ in range(5):
        ledger.beat(0, {"epoch": "e1", "node": "c0", "runs": [attempt.name]}, 1)
    assert ledger.list_settled() == []
    for _ in range(2):
        ledger.beat(0, {"epoch": "e1", "node": "c0"}, 1)
    assert ledger.list_settled() == []
    ledger.note_connected(2)  # what was heard before says nothing of what the spool has
    for beats in range(3):
        assert ledger.list_settled() == [], beats
        ledger.beat(0, {"epoch": "e1", "node": "c0"}, 2)
    assert ledger.list_settled() == [attempt.name]
    ledger.cut(3)
    assert ledger.list_settled() == [], "the spool hears nothing now"


def test_what_had_failed_before_it_was_revoked_is_settled_at_once(ledger: Ledger) -> None:
    attempt = given(ledger)
    ledger.note_failed(attempt.name)
    assert ledger.list_settled() == []
    ledger.revoke(attempt.id)
    assert ledger.list_settled() == [attempt.name]


def test_a_job_that_fails_to_start_goes_elsewhere_and_in_the_end_is_held(ledger: Ledger) -> None:
    for number in range(3):
        attempt = given(ledger, f"slot1_{number}-7.{number}")
        assert ledger.note_failed(attempt.name) is attempt
        assert ledger.gives_up(attempt) is (number == 2)
        assert f'SubletFarEvict = "slot1_{number}"' in ledger.probe(0, 1, 5)
        ledger.revoke(attempt.id)


def test_a_node_that_ends_takes_nothing_more_and_is_not_evicted(ledger: Ledger) -> None:
    ledger.beat(0, {"epoch": "e1", "node": "c0", "ending": "its lifetime is over"}, 1)
    assert ledger.alive(0, 1)
    assert "SubletFarReady = False" in ledger.probe(0, 1, 5)


def test_a_name_from_the_far_side_can_not_leave_its_string(ledger: Ledger) -> None:
    ledger.beat(0, {"epoch": "e1", "node": 'x"\nSTART = True\\'}, 1)
    assert 'SubletFarNode = "xSTART = True"' in ledger.probe(0, 1, 5)


def test_what_its_node_has_not_named_for_long_has_failed_and_is_given_to_another(ledger: Ledger) -> None:
    attempt = given(ledger)
    for _ in range(GONE):
        beats(ledger, 0, 1)  # the spool doesn't have it yet
    ledger.note_stored(attempt.name)
    for _ in range(GONE):
        ledger.beat(0, {"epoch": "e1", "node": "c0", "runs": [attempt.name]}, 1)
    for _ in range(GONE - 1):
        beats(ledger, 0, 1)
    assert ledger.list_vanished() == []
    ledger.beat(0, {"epoch": "e1", "node": "c0", "runs": [attempt.name]}, 1)  # it was only slow to be seen
    beats(ledger, 0, 1)
    assert ledger.list_vanished() == []
    for _ in range(GONE - 1):
        beats(ledger, 0, 1)
    assert ledger.list_vanished() == [attempt.name]
    ledger.note_failed(attempt.name)
    assert ledger.list_vanished() == []


def test_what_its_node_no_longer_names_because_its_result_is_on_the_way_is_waited_for(ledger: Ledger) -> None:
    attempt = given(ledger)
    ledger.note_stored(attempt.name)
    ledger.arriving.add(attempt.name)
    for _ in range(GONE):
        beats(ledger, 0, 1)
    assert ledger.list_vanished() == []


def test_a_job_is_asked_to_end_once_where_it_runs_and_can_be_reached_and_its_result_is_still_taken(
    ledger: Ledger,
) -> None:
    beats(ledger, 0, 10)
    attempt = given(ledger)
    assert not ledger.ask_to_end(attempt.id, 10), "it is not on its node yet"
    ledger.note_stored(attempt.name)
    assert ledger.ask_to_end(attempt.id, 10) == [attempt]
    assert ledger.orders == [{"op": "kill", "attempt": attempt.name, "node": 0, "gently": True}]
    assert not ledger.ask_to_end(attempt.id, 11), "it has been asked"
    assert ledger.list_ending(attempt.id) == [attempt]
    assert ledger.accepts(attempt.name)
    assert ledger.revoke(attempt.id) == [attempt], "it took too long"
    assert ledger.orders == [{"op": "kill", "attempt": attempt.name, "node": 0}]
    assert not ledger.list_ending(attempt.id)
    assert not ledger.accepts(attempt.name)


@pytest.mark.parametrize("trouble", ["no link", "dead", "stopped"])
def test_a_job_that_can_not_be_asked_to_end_is_not_waited_for(ledger: Ledger, trouble: str) -> None:
    beats(ledger, 0, 10)
    attempt = given(ledger)
    ledger.note_stored(attempt.name)
    if trouble == "no link":
        ledger.cut(10)
    elif trouble == "dead":
        ledger.note_heard(20 + DEAD)
    else:
        ledger.orders.append({"op": "stop", "node": 0})
    assert not ledger.ask_to_end(attempt.id, 20 + DEAD)
