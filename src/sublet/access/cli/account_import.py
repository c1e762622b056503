"""Imports an `hpc.json`, and shows what becomes of each field before anything is done."""

from __future__ import annotations

import json
import os
from typing import Any

from sublet.access.calls import accounts as calls
from sublet.access.cli.account_secrets import confirm_host_keys, read_file, with_passphrase
from sublet.access.views.accounts import AccountPlan
from sublet.cli.output import Output, table
from sublet.kernel.errors import BadAccount, BadRequest, NotFound, SubletError
from sublet.kernel.views import plain


class Importing:
    """The import of one file."""

    def __init__(
        self, out: Output, file: str, leave_out: tuple[str, ...], key: str | None, host_key: str, fingerprint: str
    ) -> None:
        """Read the file, and take out its passphrases, which are sent only with their keys."""
        self.out, self.file, self.leave_out = out, file, leave_out
        self.key, self.host_key, self.fingerprint = key, host_key, fingerprint
        try:
            self.document: Any = json.loads(read_file(file, "the accounts"))
        except ValueError as error:
            raise BadRequest(f"{file} is no JSON: {error}.", hint="It maps names to `hpc` objects.") from error
        self.passphrases = _without_passphrases(self.document)

    def run(self, only: tuple[str, ...], *, dry_run: bool) -> int:
        """Show the plans, and unless it is a dry run, add each account that can be added; return 1 if some couldn't."""
        plans = self.out.link().do(calls.plan(self.document)).items
        wanted = [plan for plan in plans if not only or plan.name in only]
        if missing := set(only) - {plan.name for plan in plans}:
            raise NotFound(
                noun="account", name=f"{', '.join(sorted(missing))} in {self.file}", hint="Look at its names."
            )
        self._show(wanted)
        if dry_run:
            return 0
        errors = [error for plan in wanted if (error := self._try(plan))]
        if len(wanted) == 1 and errors:
            raise errors[0]
        for error in errors:
            self.out.note(f"error: {error.message}")
            self.out.note(f"hint: {error.advice}" if error.advice else "")
        self.out.note(f"{len(wanted) - len(errors)} of {len(wanted)} accounts are added.")
        return 1 if errors else 0

    def _try(self, plan: AccountPlan) -> SubletError | None:
        """Add an account; return the error if it fails, so that the others are still added."""
        try:
            self._check(plan)
            self._add(plan)
        except SubletError as error:
            return error
        return None

    def _check(self, plan: AccountPlan) -> None:
        """Raise BadAccount if it can't be an account, or needs an unsupported field that wasn't left out."""
        if plan.problem:
            raise BadAccount(name=plan.name, why=plan.problem)
        if needed := [field for field in plan.refused if not self._is_left_out(field)]:
            names = " ".join(f"--leave-out {field}" for field in needed)
            why = f"it needs what isn't available here: {', '.join(needed)}"
            raise BadAccount(name=plan.name, why=why, hint=f"If it can do without: {names}")

    def _is_left_out(self, field: str) -> bool:
        return any(field == name or field.startswith(f"{name}.") for name in self.leave_out)

    def _show(self, plans: list[AccountPlan]) -> None:
        rows = [(plan.name, note.state, note.field, note.words) for plan in plans for note in plan.notes]
        rows += [(plan.name, "refused", "", plan.problem) for plan in plans if plan.problem]
        lines = table(("ACCOUNT", "", "FIELD", "WHAT BECOMES OF IT"), rows)
        self.out.show({"items": plans}, lambda: lines, lambda: [plan.name for plan in plans])

    def _add(self, plan: AccountPlan) -> None:
        path = self.key or (os.path.join(os.path.dirname(self.file), plan.key_path) if plan.key_path else "")
        if not path:
            raise BadAccount(name=plan.name, why="its key is not in the file", hint="Give it once: --key FILE")
        key = read_file(path, f"the key of {plan.name}")
        host, port = str(plan.fields["host"]), int(plan.fields.get("port", 22))
        keys = confirm_host_keys(self.out, host, port, self.host_key, self.fingerprint)
        rules = [plain(rule) for rule in plan.rules]
        wish = {**plan.fields, "name": plan.name, "host_keys": keys, "rules": rules, "key": key}
        wish["passphrase"] = self.passphrases.get(plan.name, "")
        link = self.out.link()
        view = with_passphrase(self.out, wish, lambda ask: link.do(calls.add(ask)))
        self.out.note(f"{view.name} is added; its key {view.key} is stored sealed: {path} is needed here no longer.")
        if wish["passphrase"]:
            self.out.note(f"{self.file} has its passphrase in the clear: take it out.")


def _without_passphrases(document: Any) -> dict[str, str]:
    """Remove the passphrases from a document, and return them by account name."""
    passphrases: dict[str, str] = {}
    for name, values in document.items() if isinstance(document, dict) else ():
        login = values.get("community_login") if isinstance(values, dict) else None
        outer = login.get("external_key") if isinstance(login, dict) else None
        if isinstance(outer, dict) and outer.get("passphrase"):
            passphrases[str(name).lower()] = str(outer.pop("passphrase"))
    return passphrases
