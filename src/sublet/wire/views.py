"""What a person sees under /v1: sent by the api, read by the client, drawn by the command line and the pages.

Plain dataclasses, because the command line must not wait for pydantic. In JSON an instant is ISO 8601 in UTC with a Z,
a duration is ISO 8601 (`PT1H30M`), and memory, sizes and storage are bytes.
"""

from sublet.wire.v1.access_point import AccessPointView, SetUpAsk
from sublet.wire.v1.annexes import (
    AnnexHistory,
    AnnexList,
    AnnexView,
    CostView,
    DetailsView,
    GuestAsk,
    JobsView,
    LeaseAsk,
    LeaseView,
    NodeStateView,
    PlanView,
    RenameAsk,
    RowView,
    ShutdownAsk,
    TemplateList,
    TemplateView,
)
from sublet.wire.v1.events import EventPage, EventView
from sublet.wire.v1.health import HealthView
from sublet.wire.v1.hooks import HookAsk, HookList, HookTestView, HookView, ToldView
from sublet.wire.v1.invitations import InvitationView, InviteAsk
from sublet.wire.v1.jobs import DagList, DagView, JobExplanation, JobList, JobView, MarkAsk, SubmittingView
from sublet.wire.v1.moves import AgainAsk, Explanation, ExtendAsk, PauseView
from sublet.wire.v1.offers import OfferSetView, OfferView, ReasonView
from sublet.wire.v1.people import TokenAsk, TokenList, TokenView, WhoView
from sublet.wire.v1.platforms import (
    BusyView,
    CalendarView,
    CheckList,
    CheckView,
    LaneView,
    NodeView,
    PlatformList,
    PlatformView,
    SweptView,
)
from sublet.wire.v1.quotes import QuoteView, TermsView
from sublet.wire.v1.results import ResultFileView, ResultList
from sublet.wire.v1.sessions import ConnectorView, EndView, SessionPage, SessionView, UsageView
from sublet.wire.v1.systems import DifferenceView, LiveNodeView, LiveQueueView, ProbeView, RecordView, TrackView

__all__ = [
    "AccessPointView",
    "AgainAsk",
    "AnnexHistory",
    "AnnexList",
    "AnnexView",
    "BusyView",
    "CalendarView",
    "CheckList",
    "CheckView",
    "ConnectorView",
    "CostView",
    "DagList",
    "DagView",
    "DetailsView",
    "DifferenceView",
    "EndView",
    "EventPage",
    "EventView",
    "Explanation",
    "ExtendAsk",
    "GuestAsk",
    "HealthView",
    "HookAsk",
    "HookList",
    "HookTestView",
    "HookView",
    "InvitationView",
    "InviteAsk",
    "JobExplanation",
    "JobList",
    "JobView",
    "JobsView",
    "LaneView",
    "LeaseAsk",
    "LeaseView",
    "LiveNodeView",
    "LiveQueueView",
    "MarkAsk",
    "NodeStateView",
    "NodeView",
    "OfferSetView",
    "OfferView",
    "PauseView",
    "PlanView",
    "PlatformList",
    "PlatformView",
    "ProbeView",
    "QuoteView",
    "ReasonView",
    "RecordView",
    "RenameAsk",
    "ResultFileView",
    "ResultList",
    "RowView",
    "SessionPage",
    "SessionView",
    "SetUpAsk",
    "ShutdownAsk",
    "SubmittingView",
    "SweptView",
    "TemplateList",
    "TemplateView",
    "TermsView",
    "TokenAsk",
    "TokenList",
    "TokenView",
    "ToldView",
    "TrackView",
    "UsageView",
    "WhoView",
]
