"""What is made of a session in a cluster: names, a Secret with all that is secret, and a Job that shows none of it."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from sublet.booking.model.job import Job, Mount, Program
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts, Shape
from sublet.platforms.kubernetes.amounts import amount_of, parse_quantity
from sublet.platforms.kubernetes.manifests import PodPlace, make_first_secret, make_job, make_secret, write_program
from sublet.platforms.kubernetes.names import label_of, name_of

PLACE = PodPlace("owner-1", "python:3", "busybox:1")
HOUR = timedelta(hours=1)


PYTHON = Program(("python3", "x.py"), {"TOKEN": "polonium"})


def job(program: Program = PYTHON, **more: object) -> Job:
    base = Job(program, Amounts(Shape(2, 1 << 30, 1, 5 << 30)), (), datetime.now(UTC) + HOUR, timedelta(0))
    return replace(base, **more)  # type: ignore[arg-type]


def test_a_key_is_the_name_of_its_job_where_it_can_be() -> None:
    key = str(uuid4())
    assert name_of(key) == f"sublet-{key}"
    for odd in ("Key_1", "x" * 120, f"check-{'y' * 60}"):
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name_of(odd))
        assert len(name_of(odd)) <= 56
        assert len(label_of(odd)) <= 63
    assert name_of("Key_1") != name_of("Key_2")


def test_no_secret_stands_in_a_job_but_in_its_secret() -> None:
    for program in (
        PYTHON,
        Program((), {"TOKEN": "polonium"}, image="a:1", keeps_entrypoint=True),
    ):
        wanted = job(program)
        described = json.dumps(make_job(wanted, "k", PLACE, HOUR))
        assert "polonium" not in described
        secret = make_secret(wanted, "k", PLACE, write_program(wanted, "k", HOUR), b"files")
        contents = {name: base64.b64decode(data) for name, data in secret["data"].items()}
        assert any(b"polonium" in content for content in contents.values())
        assert contents["files"] == b"files"


def test_a_job_is_tried_once_and_its_pod_has_what_was_booked_and_no_token() -> None:
    made = make_job(job(), "k", PLACE, HOUR)
    pod = made["spec"]["template"]["spec"]
    assert (made["spec"]["backoffLimit"], pod["restartPolicy"], pod["automountServiceAccountToken"]) == (
        0,
        "Never",
        False,
    )
    main = next(container for container in pod["containers"] if container["name"] == "main")
    wanted = {"cpu": "2", "memory": str(1 << 30), "nvidia.com/gpu": "1", "ephemeral-storage": str(5 << 30)}
    assert main["resources"] == {"requests": wanted, "limits": wanted}
    assert all("limits" in each["resources"] for each in (*pod["containers"], *pod["initContainers"]))


TWO = replace(PYTHON, each_node=True)
APART = {
    "labelSelector": {"matchLabels": {"sublet.science/session": "k"}},
    "topologyKey": "kubernetes.io/hostname",
}


def test_several_nodes_are_numbered_pods_on_different_nodes_that_wait_for_one_another() -> None:
    amounts = Amounts(Shape(2, 1 << 30), nodes=2)
    wanted = job(TWO, amounts=amounts, nodes=("n1", "n2"))
    spec = make_job(wanted, "k", PLACE, HOUR)["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (2, 2, "Indexed")
    assert spec["backoffLimit"] == 0
    affinity = spec["template"]["spec"]["affinity"]
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchFields"][0]["values"] for term in terms] == [["n1"], ["n2"]]
    assert affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == [APART]
    program = write_program(wanted, "k", timedelta(minutes=1), timedelta(minutes=10))
    assert "nodes=2\ntogether=600\n" in program
    once = make_job(job(PYTHON, amounts=amounts), "k", PLACE, HOUR)["spec"]
    assert (once["completions"], "completionMode" in once) == (1, False)


def test_an_entrypoint_on_each_node_is_told_which_it_is_and_where_the_first_is() -> None:
    program = Program((), image="a:1", keeps_entrypoint=True, each_node=True)
    wanted = job(program, amounts=Amounts(Shape(1, 1 << 30), nodes=2))
    main = make_job(wanted, "k", PLACE, HOUR)["spec"]["template"]["spec"]["containers"][1]
    told = {each["name"]: each["valueFrom"] for each in main["env"]}
    assert "job-completion-index" in told["SUBLET_NODE_NUMBER"]["fieldRef"]["fieldPath"]
    first = make_first_secret("k", "owner-1", "uid-1", "10.0.0.7")
    named = told["SUBLET_FIRST_NODE"]["secretKeyRef"]
    assert named["name"] == first["metadata"]["name"] != name_of("k")
    assert base64.b64decode(first["data"][named["key"]]) == b"10.0.0.7"
    assert first["metadata"]["ownerReferences"][0]["uid"] == "uid-1"


def test_settings_become_parts_of_the_pod() -> None:
    place = replace(PLACE, user=1000, account="robot", priority="low", selector={"a": "b"}, pull_secrets=("s",))
    pod = make_job(job(nodes=("n1",)), "k", place, HOUR)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == 1000
    assert pod["containers"][1]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert (pod["serviceAccountName"], pod["priorityClassName"], pod["nodeSelector"]) == ("robot", "low", {"a": "b"})
    assert pod["imagePullSecrets"] == [{"name": "s"}]
    assert "n1" in json.dumps(pod["affinity"])


def test_labels_types_of_gpu_and_licences_are_asked_of_the_scheduler() -> None:
    asked = SchedulerOptions(constraint="disk=ssd&tape", gpu_type="A100", licenses="matlab:2")
    place = replace(PLACE, licenses={"matlab": "example.com/matlab"})
    pod = make_job(job(scheduler=asked), "k", place, HOUR)["spec"]["template"]["spec"]
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {
        "matchExpressions": [
            {"key": "disk", "operator": "In", "values": ["ssd"]},
            {"key": "tape", "operator": "Exists"},
            {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["A100"]},
        ]
    }
    assert pod["containers"][1]["resources"]["limits"]["example.com/matlab"] == "2"
    with pytest.raises(ValueError, match="it counts no license matlab"):
        make_job(job(scheduler=asked), "k", PLACE, HOUR)


def test_a_claim_is_seen_by_each_person_for_themselves_and_read_only_by_programs() -> None:
    place = replace(PLACE, claim="data")
    pods = [make_job(job(person=name), "k", place, HOUR)["spec"]["template"]["spec"] for name in ("ann", "bob")]
    stage, main = (
        next(mount for mount in container["volumeMounts"] if mount["name"] == "kept")
        for container in (pods[0]["initContainers"][0], pods[0]["containers"][1])
    )
    assert (stage.get("readOnly"), main["readOnly"]) == (None, True)
    assert {"name": "kept", "persistentVolumeClaim": {"claimName": "data"}} in pods[0]["volumes"]
    folders = {pod["initContainers"][0]["volumeMounts"][2]["subPath"] for pod in pods}
    assert len(folders) == 2


def test_what_is_mounted_elsewhere_is_a_part_of_the_session_and_the_rest_are_links() -> None:
    mounts = (Mount("data/cube", "/input"), Mount("data/map", "maps", read_only=False))
    wanted = job(mounts=mounts)
    main = make_job(wanted, "k", PLACE, HOUR)["spec"]["template"]["spec"]["containers"][1]
    assert main["volumeMounts"][1] == {
        "name": "session",
        "mountPath": "/input",
        "subPath": "session/data/cube",
        "readOnly": True,
    }
    assert "link data/map maps 0" in write_program(wanted, "k", HOUR)


def test_a_value_that_no_shell_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="zero byte"):
        write_program(job(Program(("a\0b",))), "k", HOUR)


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", "0.5"), ("2", "2"), ("16Gi", 16 << 30), ("1k", "1000"), ("1e3", "1000"), ("2E", 2 * 10**18), ("x", "0")],
)
def test_a_quantity_is_read_as_kubernetes_writes_it(text: str, number: str) -> None:
    assert parse_quantity(text) == Decimal(number)


def test_the_first_amount_that_is_there_counts() -> None:
    assert amount_of({"limits.cpu": "1500m", "cpu": "3"}, "cpu", "limits.cpu") == 3
    assert amount_of({}, "cpu") is None
