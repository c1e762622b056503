"""Which queues fit a request, what is asked of Slurm for it, and what its plan becomes."""

from datetime import UTC, datetime, timedelta

import pytest

from sublet.booking.model.offer import Node, Offer, Reason
from sublet.booking.model.request import Compute, Executable, Range, Request, Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts, Shape
from sublet.platforms.batch import fitting
from sublet.platforms.batch.site import SiteNode, SiteQueue, SiteReservation
from sublet.platforms.slurm import offers as offering
from sublet.platforms.slurm.offers import Site
from sublet.platforms.slurm.options import SlurmAccount, SlurmWish, comment, flags, wckey, wrong
from sublet.platforms.slurm.queues import open_to, partitions

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
GIB = 1 << 30
HOUR = timedelta(hours=1)
SMALL = SiteQueue("small", default=True, max_nodes=2, max_time=HOUR, max_cores=6)
LARGE = SiteQueue("large", whole=True, min_nodes=4, max_time=timedelta(days=2), accounts=("physics",))
SITE = Site(
    NOW,
    nodes=tuple(
        SiteNode(Node(f"n{number}", 8, 16 * GIB), ("small", "large") if number < 3 else ("large",))
        for number in range(1, 9)
    ),
    queues=(LARGE, SMALL, SiteQueue("closed", up=False)),
    accounts=("physics",),
)


def request(cores: int = 1, nodes: int = 1, duration: timedelta = HOUR, **more: object) -> Request:
    compute = Compute(cores=Range(cores, cores), nodes=Range(nodes, nodes), memory=Range(GIB, GIB))
    return Request(Executable("command"), compute, duration=duration, **more)  # type: ignore[arg-type]


def test_the_default_queue_comes_first_and_closed_ones_are_left_out() -> None:
    assert [queue.name for queue in open_to(SITE, "", "", "")] == ["small", "large"]


def test_a_queue_of_other_projects_is_left_out() -> None:
    assert [queue.name for queue in open_to(SITE, "", "biology", "")] == ["small"]


CALLED = {"regular": {"qos": "regular"}, "debug": {"qos": "debug"}}


@pytest.mark.parametrize("name", ["regular", ""])
def test_where_a_queue_is_a_qos_alone_no_partition_is_named_and_slurm_is_asked_once(name: str) -> None:
    queues = open_to(SITE, name, "", "", CALLED)
    wishes, reasons = offering.fitting(request(cores=8, nodes=8), SITE, queues, "far")
    assert not reasons
    [wish] = wishes
    said = flags(wish, SlurmAccount(SchedulerOptions(qos=CALLED.get(name, {}).get("qos", ""))))
    assert not [word for word in said if word.startswith("--partition")]
    assert ("--qos=regular" in said) is bool(name)
    assert partitions(SITE, queues) == {"small", "large", "closed"}
    offer = fitting.offer_for("Slurm", request(), wish, NOW, "exec", "far", NOW)
    assert isinstance(offer, Offer)
    assert offer.why == ("earliest in regular" if name else "earliest")


def test_a_queue_can_be_a_partition_with_a_qos_and_has_the_partitions_limits() -> None:
    queues = open_to(SITE, "short", "", "", {"short": {"partition": "small", "qos": "short"}})
    wishes, _ = offering.fitting(request(), SITE, queues, "far")
    assert [wish.queue for wish in wishes] == ["short"]
    assert "--partition=small" in flags(wishes[0], SlurmAccount())
    _, reasons = offering.fitting(request(nodes=3), SITE, queues, "far")
    assert "The queue short of far gives at most 2 nodes" in reasons[0].message


def test_each_queue_that_fits_is_asked_and_no_other() -> None:
    queues = open_to(SITE, "", "", "")
    wishes, reasons = offering.fitting(request(nodes=4), SITE, queues, "far")
    assert [(wish.queue, wish.amounts.nodes) for wish in wishes] == [("large", 4)]
    assert reasons == []


@pytest.mark.parametrize(
    ("wanted", "field", "nearest"),
    [
        (request(cores=7), "compute.cores.min", "6"),
        (request(nodes=3), "compute.nodes.min", "2"),
        (request(duration=2 * HOUR), "schedule.duration", "1h"),
    ],
)
def test_a_no_names_the_field_and_the_nearest_yes(wanted: Request, field: str, nearest: str) -> None:
    wishes, reasons = offering.fitting(wanted, SITE, [SMALL], "far")
    assert wishes == []
    assert (reasons[0].field, reasons[0].nearest) == (field, nearest)


def test_a_queue_with_a_least_size_says_so() -> None:
    _, reasons = offering.fitting(request(nodes=2), SITE, [LARGE], "far")
    assert (reasons[0].field, reasons[0].nearest) == ("compute.nodes.max", "4")


def test_one_node_must_have_it_all() -> None:
    nodes = (SiteNode(Node("fat", 4, 64 * GIB), ("q",)), SiteNode(Node("fast", 64, 8 * GIB), ("q",)))
    compute = Compute(cores=Range(32, 32), memory=Range(32 * GIB, 32 * GIB))
    _, reasons = offering.fitting(Request(None, compute), Site(NOW, nodes), [SiteQueue("q")], "far")
    assert "together" in reasons[0].message


def test_nodes_that_are_away_for_a_while_are_waited_for() -> None:
    site = Site(NOW, (SiteNode(Node("n1", 4, GIB), ("q",), here=False),))
    wishes, _ = offering.fitting(request(), site, [SiteQueue("q")], "far")
    assert len(wishes) == 1
    assert "1 of 1 nodes can't be used now" in offering.notes(site, {}, NOW)


def made(planned: datetime, wanted: Request) -> Offer | Reason:
    wish = SlurmWish("small", Amounts(Shape(1, GIB, 0), 1, wanted.duration))
    return fitting.offer_for("Slurm", wanted, wish, planned, "sh", "far", NOW)


def test_a_plan_without_windows_is_an_offer_at_that_time() -> None:
    offer = made(NOW + HOUR, request())
    assert isinstance(offer, Offer)
    assert (offer.start, offer.latest_start, offer.begin) == (NOW + HOUR, NOW + HOUR, None)


def test_what_waits_for_others_is_planned_after_their_end_and_has_no_begin_of_its_own() -> None:
    wanted = request(not_before=NOW + 3 * HOUR)
    assert fitting.beginning(wanted, NOW) == NOW + 3 * HOUR
    offer = made(NOW + HOUR, wanted)
    assert isinstance(offer, Offer)
    assert (offer.start, offer.latest_start, offer.begin) == (NOW + 3 * HOUR, NOW + 3 * HOUR, None)


def test_jobs_that_must_end_well_first_are_one_option() -> None:
    said = flags(SlurmWish("q", Amounts(Shape(1, GIB, 0), 1, HOUR), after=("7", "12")), SlurmAccount())
    assert said[-2:] == ("--dependency=afterok:7:12", "--kill-on-invalid-dep=yes")


def test_a_site_takes_as_many_parts_as_its_limits_leave_beside_what_is_there() -> None:
    limits = {"submits": {"physics": 40, "chemistry": 2}, "qos_submits": {"normal": 30, "short": 5}}
    site = Site(NOW, queues=(SMALL, SiteQueue("q", qos="short")), accounts=("physics",), largest_array=1001, **limits)  # type: ignore[arg-type]
    assert offering.most_parts(site, "small", SlurmAccount(), there=0) == 30
    assert offering.most_parts(site, "small", SlurmAccount(), there=25) == 5
    assert offering.most_parts(site, "small", SlurmAccount(SchedulerOptions(qos="other")), there=0) == 40
    assert offering.most_parts(site, "q", SlurmAccount(), there=0) == 5
    assert offering.most_parts(site, "small", SlurmAccount(SchedulerOptions(project="chemistry")), there=10) == 1
    assert offering.most_parts(Site(NOW, largest_array=0), "small", SlurmAccount(), there=0) == 1, "it has no arrays"
    assert offering.most_parts(Site(NOW, largest_array=1001), "small", SlurmAccount(), there=50) == 1001


def test_an_offer_says_of_how_many_parts_it_is_and_what_each_has() -> None:
    wish = SlurmWish("small", Amounts(Shape(2, GIB, 0), 1, HOUR)).cut(8)
    offer = fitting.offer_for("Slurm", request(), wish, NOW, "bag", "far", NOW)
    assert isinstance(offer, Offer)
    assert (offer.parts, offer.why) == (8, "earliest in small, in 8 parts with 2 cores and 1 h each")
    assert "--array=0-7" in flags(wish, SlurmAccount())
    assert not [word for word in flags(wish.cut(1), SlurmAccount()) if word.startswith("--array")]


def test_a_plan_that_has_passed_is_now() -> None:
    offer = made(NOW - HOUR, request())
    assert isinstance(offer, Offer)
    assert offer.start == NOW


def test_a_plan_between_two_windows_waits_for_the_second() -> None:
    windows = (Window(NOW, NOW + HOUR), Window(NOW + 4 * HOUR, NOW + 5 * HOUR))
    offer = made(NOW + 2 * HOUR, request(windows=windows))
    assert isinstance(offer, Offer)
    assert offer.start == offer.begin == NOW + 4 * HOUR
    assert offer.latest_start < NOW + 5 * HOUR


def test_slurm_is_asked_for_each_window_in_its_first_queue_and_for_the_earliest_in_all() -> None:
    windows = tuple(Window(NOW + hours * HOUR, NOW + (hours + 1) * HOUR) for hours in (8, 2, 5))
    wanted = request(windows=windows)
    wishes = [
        SlurmWish(name, Amounts(Shape(1, GIB, 0), 1, HOUR), begin=fitting.beginning(wanted, NOW))
        for name in ("small", "large")
    ]
    asks = offering.asks_for(wanted, wishes, NOW)
    begins = [(ask.wish.queue, ask.wish.begin) for ask in asks]
    assert begins == [
        ("small", NOW + 2 * HOUR),
        ("large", NOW + 2 * HOUR),
        ("small", NOW + 5 * HOUR),
        ("small", NOW + 8 * HOUR),
    ]
    offers = [
        fitting.offer_for("Slurm", ask.request, ask.wish, ask.wish.begin or NOW, "sh", "far", NOW, why=ask.why)
        for ask in asks
    ]
    found = fitting.answer([offer for offer in offers if isinstance(offer, Offer)], []).offers
    assert [(offer.start, offer.begin, offer.why) for offer in found] == [
        (NOW + 2 * HOUR, NOW + 2 * HOUR, "earliest in small"),
        (NOW + 2 * HOUR, NOW + 2 * HOUR, "earliest in large"),
        (NOW + 5 * HOUR, NOW + 5 * HOUR, "in a later window in small"),
        (NOW + 8 * HOUR, NOW + 8 * HOUR, "in a later window in small"),
    ]


def test_without_windows_or_with_one_slurm_is_asked_once_in_each_queue() -> None:
    wishes = [SlurmWish("small", Amounts(Shape(1, GIB, 0), 1, HOUR))]
    for windows in ((), (Window(NOW, NOW + HOUR),), (Window(NOW - 2 * HOUR, NOW - HOUR), Window(NOW, NOW + HOUR))):
        assert len(offering.asks_for(request(windows=windows), wishes, NOW)) == 1
    assert offering.asks_for(request(windows=(Window(NOW, NOW), Window(NOW + HOUR, NOW + HOUR))), [], NOW) == []


def test_a_window_that_a_plan_met_already_is_offered_once() -> None:
    windows = (Window(NOW, NOW + HOUR), Window(NOW + 4 * HOUR, NOW + 5 * HOUR))
    first = made(NOW + 2 * HOUR, request(windows=windows))
    again = made(NOW + 4.5 * HOUR, request(windows=windows[1:]))
    assert isinstance(first, Offer)
    assert isinstance(again, Offer)
    assert fitting.answer([first, again], []).offers == (first,)


def test_a_plan_after_all_windows_is_a_no_with_the_nearest_time() -> None:
    reason = made(NOW + 2 * HOUR, request(windows=(Window(NOW, NOW + HOUR),)))
    assert isinstance(reason, Reason)
    assert reason.nearest == "2026-12-01T11:00:00+00:00/PT1H"


def test_a_refusal_before_maintenance_says_what_would_do() -> None:
    maintenance = SiteReservation("maint", NOW + 2 * HOUR, NOW + 6 * HOUR, ("n1",))
    wish = SlurmWish("small", Amounts(Shape(1, GIB, 0), 1, 3 * HOUR))
    words = "allocation failure: Requested node configuration is not available\n"
    reason = offering.refusal(wish, words, Site(NOW, reservations=(maintenance,)), "far", NOW)
    assert "Requested node configuration is not available" in reason.message
    assert "a time under 2 h" in reason.nearest
    assert "maint" in reason.nearest


def test_a_hidden_queue_makes_the_view_partial() -> None:
    said = offering.notes(Site(NOW), {"PrivateData": "jobs,usage"}, NOW)
    assert "the view is partial: this site hides others' jobs, usage" in said
    assert offering.notes(Site(NOW), {"PrivateData": "none"}, NOW) == ()


def test_a_wish_becomes_options_of_which_each_is_one_word() -> None:
    wish = SlurmWish(
        "small",
        Amounts(Shape(4, GIB + 1, 1), 2, timedelta(seconds=61)),
        threads=2,
        begin=NOW,
        names=("n1", "n2"),
        comment="x",
    )
    asked = SchedulerOptions(project="proj", qos="short", constraint="a&b", reservation="res")
    assert flags(wish, SlurmAccount(asked, ("--licenses=m:1",))) == (
        "--partition=small",
        "--nodes=2",
        "--ntasks-per-node=4",
        "--cpus-per-task=2",
        "--mem=1025M",
        "--gres=gpu:1",
        "--time=3",
        "--begin=2026-12-01T09:00:00",
        "--nodelist=n1,n2",
        "--comment=x",
        "--licenses=m:1",
        "--qos=short",
        "--account=proj",
        "--constraint=a&b",
        "--reservation=res",
    )


def test_what_a_site_refuses_is_not_said() -> None:
    said = flags(SlurmWish("q", Amounts(Shape(1, GIB, 1), 1, HOUR)), SlurmAccount(refuses=("mem", "gres")))
    assert not [word for word in said if word.startswith(("--mem", "--gres"))]


def test_a_time_at_the_queues_limit_stays_within_it() -> None:
    assert SlurmWish("q", Amounts(Shape(1, 0, 0), 1, HOUR), longest=HOUR).limit == HOUR
    assert SlurmWish("q", Amounts(Shape(1, 0, 0), 1, HOUR), longest=2 * HOUR).limit == HOUR + timedelta(minutes=1)


@pytest.mark.parametrize(
    "word",
    [
        "--wrap=rm",
        "--output=/x",
        "--job-name=x",
        "--array=1-9",
        "--uid=0",
        "-N2",
        "--nice;rm",
        "--chdir=/",
        "--tmp=1\n2",
    ],
)
def test_options_that_could_do_something_else_are_refused(word: str) -> None:
    assert wrong([word])


def test_options_that_only_choose_nodes_or_mail_are_allowed() -> None:
    assert wrong(["--exclusive", "--licenses=matlab:1", "--mail-type=END,FAIL", "--hint=nomultithread"]) == []


def test_a_comment_is_one_plain_line() -> None:
    assert comment("ann@example.org", "a\nb;$(rm)") == "sublet person=ann@example.org a_b___rm_"
    assert comment("ann@example.org", "", "f00d") == "sublet person=ann@example.org session=f00d"
    assert comment("a b=c session=1", "x", "f00d") == "sublet person=a_b_c_session_1 session=f00d x"
    assert comment("", "it") == "sublet it"


def test_a_wckey_is_one_plain_word() -> None:
    assert wckey("ann@example.org") == "ann@example.org"
    assert wckey("a b,*$(rm)") == "a_b____rm_"
