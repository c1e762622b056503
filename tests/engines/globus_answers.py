"""Prints the answers of Globus that its own SDK ships for tests, as JSON; runs where that is installed, and alone."""

import json
import re
import sys

from globus_sdk.testing import get_response_set

WANTED = {
    "transfer": [
        ("get_submission_id", "default"),
        ("submit_transfer", "default"),
        ("submit_transfer", "failure"),
        ("operation_stat", "default"),
        ("operation_stat", "not_found"),
        ("operation_stat", "permission_denied"),
        ("operation_mkdir", "default"),
        ("operation_rename", "default"),
        ("get_endpoint", "default"),
        ("task_list", "default"),
        ("cancel_task", "default"),
    ],
    "auth": [("oauth2_client_credentials_tokens", "default")],
}
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOBODY = "00000000-0000-0000-0000-000000000000"  # in place of each UUID: some are made anew each time


def main() -> None:
    """All that are wanted, each by its name."""
    answers = {}
    for service, names in WANTED.items():
        for method, case in names:
            recorded = get_response_set(f"{service}.{method}").lookup(case)
            answers[f"{method}.{case}"] = json.loads(UUID.sub(NOBODY, json.dumps(recorded.json)))
    json.dump(answers, sys.stdout, indent=1, sort_keys=True)


if __name__ == "__main__":
    main()
