"""Settings about whom a service trusts: a policy service, and issuers of tokens."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sublet.kernel.settings_tables import Duration, Issuer


def _origin(text: str) -> str:
    """Validate an origin, in the form that browsers send."""
    if text != "*" and not re.fullmatch(r"https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?", text):
        raise ValueError("an origin is a scheme and a host in small letters, as in https://portal.example.org, or *")
    return text


Origin = Annotated[str, AfterValidator(_origin)]


class PolicySettings(BaseModel):
    """A policy service that is asked beside the rules here, over HTTP, as Open Policy Agent's data API is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(
        default="",
        pattern=r"^(https?://[^\s#]+)?$",
        description="The address that decides before something is offered, accepted or extended, as in "
        "`http://127.0.0.1:8181/v1/data/sublet/decision`; empty: none.",
    )
    timeout: Duration = Field(
        default=timedelta(seconds=2),
        gt=timedelta(0),
        le=timedelta(minutes=1),
        description="How long it may take for an answer; without one, it is a NO.",
    )
    token_file: Path | None = Field(
        default=None, description="A file, for its owner alone (0600), with the bearer token that it is shown."
    )


class IssuerSettings(BaseModel):
    """One issuer, such as an IAM, whose tokens (JWT) a gateway takes in place of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: Issuer = Field(description="Its address, exactly as its tokens have it in `iss`.")
    audiences: tuple[str, ...] = Field(
        default=(), description="What `aud` must be, or one of it; empty: the `url` of this service."
    )
    jwks: str = Field(
        default="",
        pattern=r"^(https?://[^\s#]+)?$",
        description="Where its keys are; empty: where its OpenID configuration says.",
    )
    subject: str = Field(default="sub", description="The claim by which it knows someone for good.")
    realm: str = Field(
        default="",
        pattern="^[A-Za-z0-9._-]{0,100}$",
        description="Issuers of one realm use the same subjects: the same subject is the same person.",
    )
    address: str = Field(
        default="email",
        description="The claim that is the person's e-mail address; it counts only if `email_verified` is true.",
    )
    addresses: tuple[str, ...] = Field(
        default=("*",), description="Patterns of the addresses that it can speak for; `[]`: none."
    )
    groups: tuple[str, ...] = Field(
        default=("groups", "wlcg.groups", "entitlements", "eduperson_entitlement"),
        description="Claims that list groups; rules know each as `group:NAME:GROUP`, by the name of the issuer here.",
    )
    claims: tuple[str, ...] = Field(
        default=(), description="Claims that rules know as groups too, as in `group:NAME:acr=mfa`."
    )
    scopes: dict[str, Literal["read", "run", "manage"]] = Field(
        default_factory=dict,
        description='Scope of a token → what it may do here, as in `"compute.create" = "run"`. Empty: a token may '
        "do everything its person may. Otherwise a token without any of these scopes is refused.",
    )
    skew: Duration = Field(
        default=timedelta(minutes=1),
        ge=timedelta(0),
        le=timedelta(minutes=10),
        description="How far its clock may be off.",
    )
    title: str = Field(default="", max_length=80, description="What people know it as; empty: its name here.")
    client_id: str = Field(
        default="",
        max_length=200,
        description="Its public client, without a secret, by which `sublet login` gets tokens for this service (the "
        "device grant, RFC 8628). Empty: people bring tokens that they got elsewhere.",
    )
    login_scopes: tuple[str, ...] = Field(
        default=("openid", "offline_access"),
        description="The scopes that `sublet login` asks for; `offline_access` lets a login be renewed.",
    )
    device_endpoint: str = Field(
        default="",
        pattern=r"^(https?://[^\s#]+)?$",
        description="Where a code is asked for; empty: where its OpenID configuration says.",
    )
    audience_parameter: Literal["audience", "resource", ""] = Field(
        default="audience",
        description="How `sublet login` says for which service a token is: INDIGO IAM reads `audience`, RFC 8707 has "
        "`resource`; empty: it doesn't, as the client has one audience anyhow.",
    )
    speaks_for: tuple[str, ...] = Field(
        default=(),
        description="Of a broker: names of other issuers here; it says by them who its people are, and which groups "
        "they are in. With none, they are known by its own names for them.",
    )
    is_broker: bool = Field(
        default=False,
        description="Whether it is another broker, which asks for its people: each token is for one request, and "
        "counts once.",
    )
