"""Has Globus' own client do what Sublet does, and prints what it understood. It runs where the SDK is, and alone.

Arguments: the address of the service, a token, a collection and a file there, and another collection.
"""

import json
import sys

from globus_sdk import AccessTokenAuthorizer, TransferAPIError, TransferClient, TransferData


def main(address: str, token: str, source: str, path: str, target: str) -> None:
    """List, submit the same twice, wait, cancel another, and ask for what is not there."""
    client = TransferClient(base_url=f"{address}/", authorizer=AccessTokenAuthorizer(token))
    told: dict[str, object] = {"size": client.operation_stat(source, path)["size"]}
    told["names"] = sorted(row["name"] for row in client.operation_ls(source, path=path.rpartition("/")[0] + "/"))
    told["web"] = client.get_endpoint(source)["https_server"]
    client.operation_mkdir(target, "made")
    submission = client.get_submission_id()["value"]
    tasks = []
    for _ in range(2):
        data = TransferData(source, target, label="Sublet", submission_id=submission, verify_checksum=True)
        data.add_item(path, "/made/file", recursive=False)
        tasks.append(client.submit_transfer(data)["task_id"])
    told["is_same"] = tasks[0] == tasks[1]
    told["is_done"] = client.task_wait(tasks[0], timeout=20, polling_interval=1)
    client.operation_rename(target, "/made/file", "/made/whole")
    told["cancelled"] = client.cancel_task(tasks[0])["code"]
    try:
        client.operation_stat(source, "/no/such")
    except TransferAPIError as error:
        told["error"] = [error.http_status, error.code]
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
