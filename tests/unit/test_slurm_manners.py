"""A site's own file makes a guest more modest, never less; what can't be understood is told, not obeyed."""

from datetime import timedelta

from sublet.platforms.batch.manners import Manners

OWN = Manners(timedelta(seconds=30), timedelta(seconds=5), timedelta(minutes=5), 2.0)


def test_a_site_can_only_lower_what_a_guest_does() -> None:
    said = "poll 2m\nlook 1s\nsurvey 1m # too often\ncalls 0.5\nsessions 3\nparts 4\ninteractive no\npull no\n"
    found = OWN.lower(said)
    assert (found.poll, found.look, found.survey) == (timedelta(minutes=2), OWN.look, OWN.survey)
    assert (found.calls, found.sessions, found.parts, found.interactive, found.pull) == (0.5, 3, 4, False, False)
    assert "the site's settings: at most 3 of your sessions wait or run at once" in found.notes
    assert OWN.lower("calls 100\npoll 1s\ninteractive yes\n") == OWN
    modest = Manners(pull=False, interactive=False, sessions=2)
    assert modest.lower("pull yes\ninteractive yes\nsessions 50\n") == modest


def test_what_a_site_writes_wrongly_is_told_and_changes_nothing() -> None:
    found = OWN.lower("\n# a comment\npoll often\nsessions 0\ncalls -1\ncalls nan\npull maybe\nunheard of\n")
    assert found == OWN
    assert len(found.notes) == 6
    assert all("can't be understood" in note for note in found.notes)
    assert OWN.lower("") == OWN
