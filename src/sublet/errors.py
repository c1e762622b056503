"""Every error that a caller can meet: its docstring is the message, and it carries a hint."""

from __future__ import annotations

import string
from typing import ClassVar, Protocol


class SubletError(Exception):
    """Something went wrong."""

    hint: ClassVar[str] = ""
    status: ClassVar[int] = 500  # what HTTP would call it
    exit_code: ClassVar[int] = 1  # 1 refused, 2 usage, 3 unreachable, 4 login needed

    def __init__(self, message: str = "", *, hint: str = "", **values: object) -> None:
        """Say it in the caller's words, else in the docstring's, with the values put in."""
        self.values = values
        template = message or (type(self).__doc__ or "").strip()
        self.message = template if message else _fill(template, values)
        self.advice = hint or _fill(type(self).hint, values)
        super().__init__(self.message)
        if self.advice:
            self.add_note(f"hint: {self.advice}")  # below a traceback, for whoever doesn't catch it

    @property
    def code(self) -> str:
        """The error's name on the wire: `OfferExpired` is `offer-expired`."""
        name = type(self).__name__
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


def _fill(template: str, values: dict[str, object]) -> str:
    names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
    return template.format(**{name: values.get(name, f"({name})") for name in names})


class BadRequest(SubletError):
    """The request can't be understood: {detail}"""

    hint = "The form of a request is in docs/reference/request.md; `sublet ask --example` prints one."
    status = 400
    exit_code = 2


class BadAmount(BadRequest):
    """{text} is not {what}."""

    hint = "Write {example}."


class BadName(BadRequest):
    """{name} can't be the name of {noun}."""

    hint = "Names begin with a letter and have letters, digits, `.`, `_` and `-`; a lease is NAME#3 or NAME@2026-11-14."


class BadAddress(BadRequest):
    """{address} is not an e-mail address."""

    hint = "Write NAME@DOMAIN, in letters that every mail server knows before the @."


class BadIdentity(BadRequest):
    """There is no kind of identity {kind}."""

    hint = "The kinds are email, oidc, uid, htcondor, and system:NAME for a user name on that system."


class TooLarge(SubletError):
    """The document has more than {limit}."""

    hint = "Put large inputs in files and name them under data."
    status = 413


class WrongType(SubletError):
    """A document of type {type} can't be read here."""

    hint = "Send application/json or application/yaml."
    status = 415


class NoAnswer(SubletError):
    """Nothing was typed at the question "{question}": standard input has ended."""

    hint = "Type the command in a terminal."
    status = 400
    exit_code = 2


class NotSignedIn(SubletError):
    """This needs a token."""

    hint = "Get one with `sublet token` and send it as `Authorization: Bearer …`."
    status = 401
    exit_code = 4


class TooManyConnections(SubletError):
    """Too many connections are open."""

    hint = "Try again in a few seconds. An operator can raise the limits: [connections] in sublet.toml."
    status = 503
    exit_code = 3


class RequestTooSlow(SubletError):
    """The request did not arrive in time."""

    hint = "Send it again. An operator can allow more time: request_timeout under [connections] in sublet.toml."
    status = 408


class ServiceShort(SubletError):
    """The service's machine is short of something at the moment: {what}."""

    hint = "Try again in a few seconds."
    status = 503
    exit_code = 3


class TooMany(SubletError):
    """There were too many tries of this kind: wait {seconds} s."""

    hint = "What is right still counts; only wrong ones, and repetitions, are limited."
    status = 429


class FactorNeeded(SubletError):
    """This needs a code of your second factor."""

    hint = "Type the code that your authenticator shows, or one of your recovery codes."
    status = 403
    exit_code = 4


class NotConfirmed(SubletError):
    """{provider} did not confirm who you are: {why}"""

    hint = "Begin again on the page to sign in."
    status = 403


class ProviderUnreachable(SubletError):
    """{provider} can't be asked who you are: {why}"""

    hint = "Try again in a while, or sign in by e-mail; the operator finds more in the service's log."
    status = 503
    exit_code = 3


class OutOfScope(SubletError):
    """This token is for `{scope}` only, and this needs `{needed}`."""

    hint = "`sublet token make --scope {needed}` makes one that may."
    status = 403


class BadScope(BadRequest):
    """{scope} is nothing that a token can be for."""

    hint = "Its scope has these words, each of which includes those before it: {words}."


class WrongCode(SubletError):
    """This code is wrong, was used, was tried too often, or is too old."""

    hint = "Only the newest code counts, for ten minutes and five tries; ask for another."
    status = 403
    exit_code = 4


class NotAGateway(SubletError):
    """This service is one person's own: there are no other people in it."""

    hint = "`sublet serve --gateway` serves many; `sublet login URL` signs in to one that there is."
    status = 409


class NotYours(SubletError):
    """This {noun} belongs to someone else."""

    hint = "Only the person who asked for it can see or change it."
    status = 403


class ContentsPrivate(SubletError):
    """What the session {session} prints and leaves is for its owner, {person}, alone."""

    hint = "Its owner can fetch it. Operators may read it where the service's settings say `operators_read = true`."
    status = 403


class PlatformDraining(SubletError):
    """{why}."""

    hint = "Ask again for another platform, or for a time after that."
    status = 409


class NotDraining(SubletError):
    """{platform} is not being drained."""

    hint = "`sublet platform list` shows which platforms are."
    status = 409


class NotFound(SubletError):
    """There is no {noun} {name}."""

    hint = "`sublet ps --all` lists the sessions that there are."
    status = 404


class IdTooShort(NotFound):
    """{name} is too short to name a {noun}."""

    hint = "Type at least {least} letters of its id, and more if several begin like that."
    exit_code = 2


class AppRevoked(NotFound):
    """{version} was revoked on {when}, so that nobody can run it any more: {why}"""

    hint = "`sublet app list` shows what you can run now."


class Ambiguous(SubletError):
    """{name} could mean several {nouns}: {matches}."""

    hint = "Type more of its id."
    status = 409
    exit_code = 2


class NotBookable(SubletError):
    """The nodes are no longer free at that time."""

    hint = "Ask again: another offer may fit."
    status = 409


class OfferExpired(SubletError):
    """The offer was held until {expires} and has expired."""

    hint = "Ask again."
    status = 409


class OfferGaveWay(SubletError):
    """This offer gave way to your later request {offerset}, which needed its room."""

    hint = "Ask again. `sublet ask --keep-offers` leaves your earlier offers as they are."
    status = 409


class NotAllowedNow(SubletError):
    """A session that is {phase} can't be made {wanted}."""

    hint = "`sublet status {session}` shows what it is doing."
    status = 409


class KeyReused(SubletError):
    """The idempotency key {key} was used before, for another request."""

    hint = "Send a new key with each new request; the same request under the same key gets the same answer."
    status = 422


class Refusal(Protocol):
    """One reason for a NO."""

    @property
    def field(self) -> str:
        """The field of the request."""

    @property
    def message(self) -> str:
        """The reason as a sentence."""

    @property
    def wanted(self) -> str:
        """What was asked for."""

    @property
    def limit(self) -> str:
        """What there is."""

    @property
    def nearest(self) -> str:
        """The nearest thing that would be possible."""

    @property
    def platform(self) -> str:
        """The platform that said so."""


class NoOffers(SubletError):
    """No platform can run this as it was asked."""

    hint = "`sublet ask` shows each reason and the nearest thing that would be possible."
    status = 400

    @property
    def reasons(self) -> tuple[Refusal, ...]:
        """Why not, as in `Offers.reasons`."""
        reasons = self.values.get("reasons", ())
        return reasons if isinstance(reasons, tuple) else ()


class NoRoom(SubletError):
    """It can't be extended to {until}: the next booking starts at {free_until}."""

    hint = "Ask for less, or for a new session."
    status = 409


class DataNotThere(SubletError):
    """The data {name} could not be brought from {location}: {why}"""

    hint = "Check that the address can be read from the platform's machine."


class BadTree(SubletError):
    """These files can't be an app: {why}."""

    hint = "An app is plain files below one directory, and links between them; large data belongs under data."
    status = 400
    exit_code = 2


class ServiceFull(SubletError):
    """The service has no room left on its disk."""

    hint = "Whoever runs it makes room below its SUBLET_HOME: `sublet doctor` there says how much is left."
    status = 503
    exit_code = 3


class BadManifest(SubletError):
    """The manifest can't be used: {problem}"""

    hint = "`sublet app check DIR` says all that is wrong, line by line; docs/manifest.md has the form."
    status = 400
    exit_code = 2


class OwnAppsOnly(SubletError):
    """A gateway runs no code that nobody has reviewed."""

    hint = "Try it with your own service (`sublet app check DIR --run`, without SUBLET_URL), then propose it."
    status = 409


class PlatformUnreachable(SubletError):
    """The platform {platform} can't be reached: {why}"""

    hint = "It is tried again by itself; `sublet platform check {platform}` tries it now."
    status = 503
    exit_code = 3


class PlatformRefused(SubletError):
    """The platform {platform} refused: {why}"""

    hint = "These are the platform's own words; change the request to fit."
    status = 409


class PlatformTimedOut(PlatformUnreachable):
    """{platform} did not answer within {limit}."""

    hint = "It is still being asked: try again in a moment. `sublet platform check {platform}` tries it now."


class PlatformBroken(PlatformUnreachable):
    """The platform {platform} does not work: {why}"""

    hint = "This is a defect of the platform or its plug-in; the service's log has more."


class QueueFull(PlatformUnreachable):
    """{platform} takes no more than {limit} of one person's sessions at a time."""

    hint = "This one goes on by itself when another has ended."


class LoginNeeded(SubletError):
    """A person must sign in to {platform} first."""

    hint = "sublet system login {platform}"
    status = 409
    exit_code = 4


class AccountRefused(LoginNeeded):
    """The service account at {platform} can't sign in: {why}"""

    hint = "Its operator must act; sessions wait meanwhile."


class ServiceUnreachable(SubletError):
    """No Sublet service answers at {address}: {why}"""

    hint = "`sublet up` starts one; `sublet doctor` says what is missing."
    status = 503
    exit_code = 3


class UnknownAnswer(SubletError):
    """The answer is not one that this version of Sublet understands: it is {why}."""

    hint = "Check the address, and that no proxy answers in place of the service; `sublet doctor` compares versions."
    status = 502
    exit_code = 3


class UnusableHome(SubletError):
    """SUBLET_HOME ({home}) can't be made or written: {why}."""

    hint = "Make a directory that you can write: mkdir -m 700 DIR, then SUBLET_HOME=DIR."
    exit_code = 2


class UnsafeHome(SubletError):
    """SUBLET_HOME ({home}) can't be trusted: {why}."""

    hint = "Whoever can write there could run programs as you. Make a new one: mkdir -m 700 DIR, then SUBLET_HOME=DIR."
    exit_code = 2


class BadSecretKey(SubletError):
    """The file {file} is no key: it has {size} bytes, and a key has {wanted}."""

    hint = "It was cut off, by a full disk or a crash. Restore it from a backup; if you remove it, links in use end."
    status = 503


class NotHere(SubletError):
    """Sublet's service doesn't start here: {why}"""

    hint = "{advice}"
    exit_code = 1


class ServerNotInstalled(SubletError):
    """{what} needs the parts of Sublet that run a service, and only its client is installed here."""

    hint = "pip install 'sublet[server]'; or use a service that runs elsewhere: sublet login URL"
    exit_code = 1


class BadSettings(SubletError):
    """The settings in {file} can't be used: {detail}"""

    hint = "docs/reference/settings.md lists every setting with an example."
    exit_code = 2


class NotBackedUp(SubletError):
    """No backup was made: {why}."""

    hint = "Nothing was changed; `sublet doctor` checks what is here."
    exit_code = 1


class NotRestored(SubletError):
    """{file} was not restored: {why}."""

    hint = "Nothing was changed. Try another backup."
    exit_code = 1


class LostDatabase(SubletError):
    """The database {where} is not as the service left it: {why}."""

    hint = "`sublet doctor` checks it."
    exit_code = 3


class BrokenStore(SubletError):
    """The database {where} can't be used: {why}"""

    hint = "`sublet doctor` checks it."
    status = 503
    exit_code = 3


class NotChangeable(SubletError):
    """The {path} of a session can't be changed by {kind}."""

    hint = "`meta.options` of the session lists what can be: its phase, and schedule.available.duration."
    status = 409


class NotAcceptable(SubletError):
    """Nothing here can be sent as {type}."""

    hint = "Accept application/json or application/yaml."
    status = 406


class OperatorsOnly(SubletError):
    """Only an operator can do this."""

    hint = "On the service's own machine, its owner is one: use the command line there."
    status = 403


class NotAllowed(SubletError):
    """{why}"""

    hint = "{how}"
    status = 403


class AlreadyAllowed(SubletError):
    """You may use the {noun} {name} already: {why}."""

    hint = "`sublet access` shows all that you may use."
    status = 409


class AlreadyDecided(SubletError):
    """This request for access was {state} already, by {by}."""

    hint = "`sublet access list --all` shows what was decided; `sublet rule list` shows the rules."
    status = 409


class TooManyOpen(SubletError):
    """You have {count} requests for access open already."""

    hint = "Wait until an operator has decided on some: `sublet access list` shows them."
    status = 409


class NotInvited(SubletError):
    """{platform} is not shared with you."""

    hint = "Its owner can share it: `sublet annex share NAME PERSON`."
    status = 403


class NotOverYet(SubletError, TimeoutError):
    """The session {session} is still {phase} after {seconds} s."""

    hint = "Wait longer, or see why with `sublet explain {session}`."
    status = 409


class CostsMoney(SubletError):
    """It would cost {price}."""

    hint = "Say how much it may cost with max_cost, or take an offer yourself: `client.ask(…)[0].accept()`."
    status = 409


class Changed(SubletError):
    """{path} is another than it was."""

    hint = "Fetch it from its beginning."
    status = 412


class NotSubmitted(SubletError):
    """The job was not submitted yet."""

    hint = "Call its submit() first, or name the id of one that was."
    exit_code = 2


class NotHad(SubletError):
    """This service does not answer {what}."""

    hint = "Its operator can change that: the setting `{setting}`."
    status = 404


class NotReviewed(SubletError):
    """No app was approved here with the code of {repository}."""

    hint = "`sublet app list` shows those that you may run; `sublet app propose {repository}` asks for its review."
    status = 403


class AlreadySubmitted(SubletError):
    """The job {job} is already submitted or in the queue."""

    hint = "Make another one; `sublet again` runs the same once more."
    status = 409


class TooManyDrafts(SubletError):
    """You have {most} jobs that were never submitted, and there can't be more."""

    hint = "Submit or delete some of them; old ones are deleted by themselves."
    status = 409


class NoGlobus(SubletError):
    """Nothing here moves data by Globus."""

    hint = "Name data by an https address, and fetch results with `sublet result SESSION --out DIR`."
    status = 403


class BadHook(SubletError):
    """{address} can't be told: {why}"""

    hint = "A call goes to an https address that everyone can reach; mail goes to your own address alone."
    status = 400
    exit_code = 2


class TooManyHooks(SubletError):
    """You have {most} hooks already, and there can't be more."""

    hint = "`sublet notify list` shows them, and `sublet notify remove ID` makes room."
    status = 409


class NotTold(SubletError):
    """{address} did not take it: {why}"""

    hint = "It has to answer with a status from 200 to 299, within {seconds} s."
    status = 502
    exit_code = 3


class SessionUnreachable(SubletError):
    """What runs in the session {session} does not answer: {why}"""

    hint = "It may be starting or ending: `sublet status {session}`."
    status = 502
    exit_code = 3


class DiskFull(PlatformRefused):
    """The platform {platform} has no room left on its disk: {why}"""

    hint = "Remove old sessions with `sublet delete`, or ask the operator for room."


class Forged(SubletError):
    """This form did not come from a page of this service, or the page is too old."""

    hint = "Go back, load the page again, and send it once more."
    status = 403


class AlreadyThere(SubletError):
    """There is a {noun} {name} already."""

    hint = "Change that one, or choose another name."
    status = 409


class AnnexInUse(SubletError):
    """The annex {name} has a lease already: {leases}."""

    hint = "`sublet annex add {name}` puts more under the same name; `sublet annex status {name}` shows what is there."
    status = 409


class NameTaken(SubletError):
    """There is an annex {name} already."""

    hint = "Choose another name; `sublet annex status` lists them."
    status = 409


class LeaseRefused(SubletError):
    """The resource request is refused: {why}"""

    hint = "`sublet annex create NAME --dry-run` shows each line, and the flag that changes it."
    status = 409


class LeaseOver(SubletError):
    """{lease} ended before the DAG did: {why}"""

    hint = "Submit the DAG again: its rescue DAG goes on where it was. It may need a longer `--lifetime`."
    status = 409


class NotPending(SubletError):
    """{lease} no longer waits: it {state}."""

    hint = "`sublet annex shutdown {lease}` ends it."
    status = 409


class NoLease(SubletError):
    """{name} has no lease that {wanted}."""

    hint = "`sublet annex history {name}` lists those that it had."
    status = 409


class NotUpYet(SubletError):
    """Not all nodes of {name} have reported after {seconds} s."""

    hint = "Wait longer, or see why with `sublet annex status {name}`."
    status = 409


class PersonalOnly(SubletError):
    """An annex belongs to one person, and is made by their own service; this is a gateway."""

    hint = "Run Sublet as yourself, where you have an account: `sublet annex create NAME`."
    status = 409


class BadRepository(SubletError):
    """{address} can't be proposed: {why}."""

    hint = "Write it as https://github.com/owner/name, or github://owner/name."
    status = 400
    exit_code = 2


class RepositoryUnreachable(SubletError):
    """{repository} can't be fetched: {why}"""

    hint = "Try the same address with `git ls-remote` where you are."
    status = 503
    exit_code = 3


class ReviewersOnly(SubletError):
    """Only a reviewer or an operator can do this."""

    hint = "An operator makes someone a reviewer: `sublet person role ADDRESS reviewer`."
    status = 403


class OwnProposal(SubletError):
    """{version} was proposed by yourself: somebody else has to approve it."""

    hint = "Another reviewer can; an operator allows it for all with `own_review = true` in the section [apps]."
    status = 403


class NotAsReviewed(SubletError):
    """{version} is not what you looked at: its code is {tree}."""

    hint = "Look at it again, and name the tree that you see: `sublet app review {version}`."
    status = 409


class NotDecidable(SubletError):
    """{version} is {state} and can't be {wanted}: {why}."""

    hint = "`sublet app show {version}` shows its state and its history."
    status = 409


class AppTaken(SubletError):
    """There is an app {name} already, and it is {owner}'s."""

    hint = "Its owner, or an operator, proposes its next version; give yours another name with --name."
    status = 409


class AppRefused(SubletError):
    """{version} can't be started: {why}"""

    hint = "`sublet app list` shows what can be run now."
    status = 409


class BadSystem(SubletError):
    """What is known of the system {name} can't be read: {where}: {detail}"""

    hint = "docs/guides/systems.md shows how such a file is written; `sublet system remove {name}` forgets it."
    status = 400
    exit_code = 2


class NoOwnLogins(SubletError):
    """A gateway never takes a person's password or code for {platform}."""

    hint = (
        "It signs in by a service account's key, which its operator sets. Your own logins are for a Sublet of your own."
    )
    status = 403


class NotPrivate(SubletError):
    """A password or a code that is typed here would travel unprotected."""

    hint = "Open this page on the service's own machine, or by https; or sign in there with `sublet system login`."
    status = 403


class NotAsked(SubletError):
    """This is no longer the question: {why}"""

    hint = "Look at the page again."
    status = 409


class NoHTCondor(SubletError):
    """There is no HTCondor on this machine."""

    hint = "`sublet annex setup` brings it; no administrator is needed."
    status = 409


class AccessPointFailed(SubletError):
    """The access point did not start: {why}"""

    hint = "`sublet annex setup` says what it needs; its logs are in {logs}."
    status = 503
    exit_code = 3


class AccessPointUnreachable(SubletError):
    """The access point does not answer: {why}"""

    hint = "It is tried again by itself; `sublet annex setup` says how it is."
    status = 503
    exit_code = 3


class AccessPointRefused(SubletError):
    """The access point refused: {why}"""

    hint = "These are HTCondor's own words."
    status = 409


class BadToken(SubletError):
    """This is no token of HTCondor's."""

    hint = "Fetch another."
    status = 400


class NotConfigurable(SubletError):
    """The value of {name} can't stand in HTCondor's configuration: it has more than one line."""

    hint = "Write it on one line."
    status = 400


class NotListening(PlatformRefused):
    """Pilots can't ask this service: {why}"""

    hint = "Set `address` and `endpoint` in the section [annex] of sublet.toml; `sublet doctor` says what is missing."


class PilotRefused(SubletError):
    """{why}"""

    hint = "A pilot claims its place in a lease once, with the token that its job came with."
    status = 403


class ReleaseRefused(SubletError):
    """That release of HTCondor can't be used: {why}"""

    hint = "Set `release` and `release_sha256` in the section [annex] of sublet.toml, or install HTCondor's package."
    status = 409


class NotYet(SubletError):
    """{what} is not there yet."""

    hint = "It is being brought: ask again in a moment."
    status = 503
    exit_code = 3


class BadJobSet(SubletError):
    """{file} can't be read as a job set: {why}."""

    hint = "A job set has a name, one iterator and jobs, as `htcondor jobset submit` reads them."
    status = 400
    exit_code = 2


class NotAtAccessPoint(SubletError):
    """Jobs are submitted on the machine where their access point is, not by way of a service elsewhere."""

    hint = "Type it there, without SUBLET_URL."
    status = 409


class SubmitFailed(SubletError):
    """{program} ended with code {code}; what it said is above."""

    hint = "Nothing else was changed."
    status = 409


class NotMarkable(SubletError):
    """{jobs} can't be changed: {why}"""

    hint = "`sublet job list` shows your jobs and the annexes that they name."
    status = 409


class BadInvitation(SubletError):
    """This is no invitation to fetch requests for leases."""

    hint = "Who leases makes one with `sublet pilot invite SITE --out FILE`; it is used as it is."
    exit_code = 2


class NoMasterKey(SubletError):
    """There is no master key, and {purpose} must not be stored without one."""

    hint = (
        "Make one with `sublet account key FILE`, outside SUBLET_HOME, and name it in sublet.toml: "
        "master_key = FILE. Or give it as systemd's credential sublet-master-key."
    )
    status = 503


class BadMasterKey(SubletError):
    """The master key {file} can't be used: {why}."""

    hint = "It is a file of the service's own user, mode 600, outside SUBLET_HOME: `sublet account key FILE` makes one."
    status = 503
    exit_code = 2


class NotSealedHere(SubletError):
    """What is stored sealed for {purpose} can't be opened: {why}."""

    hint = "Put the master key that sealed it back into the key file, after the newer ones; or store the secret anew."
    status = 503


class MailNotSent(SubletError):
    """The mail to {address} could not be sent: {why}"""

    hint = "An operator sets how mail is sent under [mail] in the settings."
    status = 503
    exit_code = 3


class BadAccount(SubletError):
    """The account {name} can't be used: {why}."""

    hint = "docs/accounts.md lists its fields; `sublet account import FILE --dry-run` says what becomes of each."
    status = 400
    exit_code = 2


class AccountInUse(SubletError):
    """{count} sessions of the account {name} are not over."""

    hint = "Deny it to everybody with a rule, wait for them or cancel them, then remove it."
    status = 409


class BadKey(SubletError):
    """This can't be the private key of an account: {why}."""

    hint = "Give a private key as ssh-keygen makes it, with its passphrase if it has one."
    status = 400
    exit_code = 2


class UnknownHostKey(SubletError):
    """Nobody has confirmed the host key of {host}."""

    hint = "Compare its fingerprint with the one that the centre publishes, and confirm it; or give --host-key FILE."
    status = 409
