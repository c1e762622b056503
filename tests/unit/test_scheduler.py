"""What is asked of a cluster's scheduler: one table, from which every form of it is made."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest
from click.testing import CliRunner

from sublet.booking.documents.request import read_request
from sublet.booking.documents.rerun import with_changes
from sublet.booking.documents.shapes import WHERE
from sublet.booking.model.offer import Offer
from sublet.booking.model.request import Request
from sublet.booking.model.scheduler import SchedulerOptions, scheduler_specs
from sublet.booking.model.scheduler_rules import find_refused, list_choosable
from sublet.booking.model.shape import Amounts, Shape
from sublet.booking.pages.scheduler import fill_scheduler_fields, make_scheduler_fields, read_scheduler_fields
from sublet.booking.store.offersets import REQUEST
from sublet.booking.store.older_rows import gather_offer_options, gather_request_options
from sublet.booking.store.rows import OFFER
from sublet.cli.command import with_options
from sublet.cli.scheduler import read_scheduler_flags, scheduler_flags
from sublet.client.wishes import Wishes
from sublet.kernel.errors import BadRequest
from sublet.platforms.slurm.options import SlurmAccount, SlurmWish, flags, refusals

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
WISH = SlurmWish("q", Amounts(Shape(1, 1 << 30), 1, timedelta(hours=1)), comment="sublet person=ada")
TYPED = {
    "queue": "short",
    "qos": "high",
    "project": "abc",
    "constraint": "gpu",
    "nice": 100,
    "reservation": "class",
    "licenses": "matlab@db:2",
    "exclusive": True,
    "mail": "end",
    "gpu_type": "a100",
    "options": {"comment": "x", "contiguous": True},
}
ASKED = SchedulerOptions(
    queue="short",
    qos="high",
    project="abc",
    constraint="gpu",
    nice=100,
    reservation="class",
    licenses="matlab@db:2",
    exclusive=True,
    mail="end",
    gpu_type="a100",
    options=("comment=x", "contiguous"),
)


def test_every_option_of_the_table_is_read_from_the_short_form_as_it_was_written() -> None:
    assert TYPED.keys() == scheduler_specs().keys()
    assert read_request({"run": ["true"], **TYPED}, NOW).scheduler == ASKED
    assert ASKED.document() == TYPED


def test_the_full_form_and_another_run_have_the_same_words() -> None:
    full: dict[str, Any] = {"executable": {"kind": "urn:sublet:kind:executable:command", "argv": ["true"]}, **TYPED}
    assert read_request(full, NOW).scheduler == ASKED
    again, told = with_changes(full, {"constraint": "cpu"}, {}, {})
    assert again["constraint"] == "cpu"
    assert again["nice"] == 100
    assert told == ("constraint: gpu → cpu",)


def test_every_option_is_a_keyword_of_the_sdk_and_a_place_for_rules() -> None:
    assert scheduler_specs().keys() <= set(Wishes.__annotations__)
    assert scheduler_specs().keys() <= set(WHERE)


def test_every_option_is_a_flag_and_what_is_typed_is_what_a_document_has() -> None:
    seen: dict[str, Any] = {}

    def keep(**given: Any) -> None:
        seen.update(read_scheduler_flags(given))

    line = "--queue short --qos high --project abc --constraint gpu --nice 100 --reservation class"
    more = "--licenses matlab@db:2 --exclusive --mail end --gpu-type a100 --option comment=x --option --contiguous"
    command = click.command()(with_options(keep, scheduler_flags()))
    assert CliRunner().invoke(command, f"{line} {more}".split()).exit_code == 0
    assert seen == TYPED
    seen.clear()
    assert CliRunner().invoke(command, []).exit_code == 0
    assert seen == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nice", -1),
        ("nice", "much"),
        ("nice", True),
        ("nice", 1 << 40),
        ("constraint", "a b"),
        ("constraint", "--uid=0"),
        ("licenses", "m;id"),
        ("gpu_type", "a100:4"),
        ("exclusive", "yes"),
        ("mail", "ada@example.org"),
        ("mail", "sometimes"),
        ("options", "comment=x"),
        ("options", {"Comment": "x"}),
        ("options", {"-uid": "0"}),
        ("options", {"comment": "two\nlines"}),
        ("options", {"comment": ["x"]}),
        ("options", [f"x={n}" for n in range(30)]),
    ],
)
def test_a_value_that_no_scheduler_takes_is_refused_by_its_field(field: str, value: Any) -> None:
    with pytest.raises(BadRequest) as error:
        read_request({"run": ["true"], field: value}, NOW)
    assert field in error.value.message


def test_sbatch_is_told_each_of_them_after_what_sublet_says_and_the_comment_stands_behind_sublets() -> None:
    words = flags(WISH, SlurmAccount(ASKED, ("--tmp=1G",)))
    assert words[0] == "--partition=q"
    assert "--comment=sublet person=ada x" in words
    assert words[words.index("--tmp=1G") + 1 :] == (
        *("--qos=high", "--account=abc", "--constraint=gpu", "--nice=100", "--reservation=class"),
        *("--licenses=matlab@db:2", "--exclusive", "--mail-type=end", "--contiguous"),
    )
    assert "--nice=0" in flags(WISH, SlurmAccount(SchedulerOptions(nice=0)))
    assert not any("nice" in word or "exclusive" in word for word in flags(WISH, SlurmAccount()))


def test_what_is_asked_stands_before_what_settings_say() -> None:
    usual = SchedulerOptions(project="ours", constraint="cpu")
    assert SchedulerOptions(constraint="gpu", nice=1).over(usual) == SchedulerOptions(
        project="ours", constraint="gpu", nice=1
    )


def test_a_site_says_what_it_refuses_of_what_is_asked_instead_of_dropping_it() -> None:
    said = dict(refusals(ASKED, ("constraint", "contiguous"), is_booked=False))
    assert said == {"constraint": "it refuses --constraint", "options.contiguous": "it refuses --contiguous"}
    for word in ("uid=0", "wrap=id", "output=/etc/x", "account=other", "job-name=x", "export=ALL", "comment"):
        free = SchedulerOptions(options=(word,))
        assert bool(list(refusals(free, (), is_booked=False))) == (word != "comment"), word


def test_a_calendar_that_chooses_the_nodes_takes_no_constraint() -> None:
    said = dict(refusals(ASKED, (), is_booked=True))
    assert said.keys() == {"queue", "constraint", "reservation", "licenses", "exclusive", "gpu_type", "options"}


def test_a_platform_that_has_no_such_thing_says_so() -> None:
    refused = find_refused(SchedulerOptions(nice=5), "here", lambda _: False, None)
    assert refused
    assert (refused.field, refused.wanted) == ("nice", "5")
    assert refused.message == "A nice value can't be chosen on here: it has none."
    assert find_refused(SchedulerOptions(), "here", lambda _: False, ()) is None


@pytest.mark.parametrize("name", scheduler_specs())
def test_on_a_gateway_only_what_harms_nobody_can_be_chosen_unless_its_operator_allows_more(name: str) -> None:
    one = SchedulerOptions(**{name: getattr(ASKED, name)})
    refused = find_refused(one, "far", lambda _: True, ())
    assert (refused is None) == (name in ("constraint", "nice", "gpu_type"))
    assert find_refused(one, "far", lambda _: True, (name, "comment", "contiguous")) is None
    assert find_refused(one, "far", lambda _: True, None) is None


def test_an_operator_allows_free_options_one_by_one() -> None:
    sneaky = SchedulerOptions(options=("nice=-5",))
    assert find_refused(sneaky, "far", lambda _: True, ("comment",))
    both = SchedulerOptions(options=("comment=x", "mail-user=eve@example.org"))
    refused = find_refused(both, "far", lambda _: True, ("comment",))
    assert refused
    assert refused.field == "options.mail-user"


def test_a_form_has_a_field_for_each_option_that_can_be_chosen_and_for_what_was_typed() -> None:
    assert list_choosable(lambda _: False, None) == ()
    assert list_choosable(lambda _: True, None) == tuple(scheduler_specs().values())
    on_a_gateway = list_choosable(lambda _: True, ())
    assert [spec.name for spec in on_a_gateway] == ["constraint", "nice", "gpu_type"]
    more = list_choosable(lambda name: name != "nice", ("queue", "switches"))
    assert [spec.name for spec in more] == ["queue", "constraint", "gpu_type", "options"]
    shown = make_scheduler_fields(on_a_gateway, {"x.queue": "short", "x.nice": "many"}, "x.")
    assert [(each.key, each.id, each.value, each.control) for each in shown] == [
        ("x.queue", "x-queue", "short", "text"),
        ("x.constraint", "x-constraint", "", "text"),
        ("x.nice", "x-nice", "many", "text"),
        ("x.gpu_type", "x-gpu_type", "", "text"),
    ]


def test_what_a_form_is_filled_in_with_is_what_was_asked() -> None:
    filled = fill_scheduler_fields(ASKED, "x.")
    document = read_scheduler_fields(filled, "x.")
    assert document == TYPED
    assert read_request({"run": ["true"], **document}, NOW).scheduler == ASKED
    assert read_scheduler_fields({"exclusive": "", "nice": " ", "options": "\n"}) == {}


def test_rows_of_before_keep_their_queue_quality_and_project() -> None:
    offer = Offer("far", "sh", NOW, NOW, timedelta(hours=1), (), Shape(1, 1), queue="short", scheduler=ASKED)
    new = OFFER.dump_json(offer).decode()
    assert OFFER.validate_json(gather_offer_options(new)) == offer
    old = json.loads(new)
    del old["scheduler"]
    read = OFFER.validate_json(gather_offer_options(json.dumps(old | {"qos": "high", "project": "abc"})))
    assert (read.queue, read.scheduler) == ("short", SchedulerOptions(qos="high", project="abc"))
    request = json.loads(REQUEST.dump_json(Request(None)))
    del request["scheduler"]
    request |= {"queue": "short", "qos": "", "project": "abc"}
    found = REQUEST.validate_json(gather_request_options(json.dumps(request)))
    assert found == Request(None, scheduler=SchedulerOptions(queue="short", project="abc"))
    whole = REQUEST.dump_json(Request(None, scheduler=ASKED)).decode()
    assert gather_request_options(whole) is whole


def test_no_option_is_said_unless_somebody_says_it() -> None:
    assert SchedulerOptions().list_asked() == {}
    assert [one.name for one in fields(SchedulerOptions)] == list(scheduler_specs())
