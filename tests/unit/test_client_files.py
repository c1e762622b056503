"""One rule for files: what a request names by a relative path is brought, and lands where it was named."""

import os
from pathlib import Path
from typing import Any

import pytest

from sublet.client.documents import document_of, prepare
from sublet.kernel.errors import BadRequest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "project"
    for name in ("sim.py", "sub/x.csv", "conf.yaml", "run.sh", "a=b.txt"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    (tmp_path / "above.csv").write_text("above")
    monkeypatch.chdir(place)
    return place


def landed(document: dict[str, Any], **more: Any) -> dict[str, str]:
    data = document_of(document, more, local=True).get("data", [])
    return {item["path"]: item["location"] for item in data}


@pytest.mark.parametrize(
    "document",
    [
        {"run": ["python3", "sim.py", "sub/x.csv"]},
        {"run": "python3 sim.py sub/x.csv"},
        {"bag": {"template": ["python3", "sim.py", "{n}", "sub/x.csv"], "grid": {"n": [1, 2]}}},
        {"bag": {"template": "python3 {program} sub/x.csv", "grid": {"program": ["sim.py"]}}},
        {"bag": ["python3 sim.py sub/x.csv", ["python3", "sim.py"]]},
        {"bag": {"tasks": [{"name": "one", "argv": ["python3", "sim.py", "sub/x.csv"]}]}},
        {"image": "python:3", "run": ["python3", "./sim.py", "sub/x.csv"]},
    ],
)
def test_what_a_command_names_is_brought_whatever_it_is_written_in(here: Path, document: dict[str, Any]) -> None:
    found = landed(document)
    assert found == {"sim.py": str(here / "sim.py"), "sub/x.csv": str(here / "sub/x.csv")}


def test_a_file_is_found_where_the_request_was_written(here: Path, tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "job.yaml").write_text("run: [python3, other.py, sim.py]\ndata: [other.csv]\n")
    for name in ("other.py", "other.csv"):
        (tmp_path / "away" / name).touch()
    prepared = prepare("../away/job.yaml", {}, local=True)
    assert prepared.files.names == ["other.csv", "other.py"]
    assert prepare("../away/job.yaml", {"run": ["python3", "sim.py"]}, local=True).files.names == [
        "other.csv",
        "sim.py",
    ]


def test_a_program_is_a_path_only_with_a_slash_and_options_may_name_files(here: Path) -> None:
    assert landed({"run": ["sim.py", "--config=conf.yaml", "-x", "../above.csv", "/etc/hosts", "."]}) == {
        "conf.yaml": str(here / "conf.yaml")
    }
    assert landed({"run": ["./run.sh"]}) == {"run.sh": str(here / "run.sh")}
    assert landed({"run": ["./run.sh"]}, stay=True) == {}
    assert "stay" not in document_of({"run": "true", "stay": True}, {}, local=True)


def test_a_folder_that_is_named_comes_without_clutter(here: Path) -> None:
    [item] = document_of({"run": ["ls", "sub"]}, {}, local=True)["data"]
    assert (item["path"], item["location"], item["size"]) == ("sub", str(here / "sub"), len("sub/x.csv"))
    assert "__pycache__/" in item["ignore"]


def test_data_lands_where_it_was_named_or_under_its_last_name(here: Path, tmp_path: Path) -> None:
    names = ["sub/x.csv", "./sim.py", "../above.csv", "a=b.txt"]
    assert list(landed({"run": "true", "data": names})) == ["sub/x.csv", "sim.py", "above.csv", "a=b.txt"]
    assert landed({"run": "true", "data": str(here / "conf.yaml")}) == {"conf.yaml": str(here / "conf.yaml")}
    told = {"location": "sim.py", "name": "code"}
    sent = document_of({"run": "true", "data": [told, "https://x.org/a.csv"]}, {}, local=True)
    assert sent["data"] == [{"location": str(here / "sim.py"), "name": "code"}, "https://x.org/a.csv"]


def test_how_much_is_brought_counts_what_is_in_folders(here: Path, tmp_path: Path) -> None:
    brought = prepare({"run": ["true"], "data": [{"location": "sub", "path": "in"}, "sim.py"]}, {}, local=True).files
    assert brought.size == len("sub/x.csv") + len("sim.py")


def test_what_is_not_there_is_said_before_anything_is_asked(here: Path, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"there is no file gone\.csv here"):
        document_of({"run": "true", "data": ["gone.csv"]}, {}, local=True)
    (tmp_path / "job.yaml").write_text("run: 'true'\ndata: [gone.csv]\n")
    with pytest.raises(BadRequest, match=r"there is no file gone\.csv in "):
        document_of(tmp_path / "job.yaml", {}, local=True)


def test_two_things_in_one_place_are_refused_and_the_same_thing_twice_is_one(here: Path, tmp_path: Path) -> None:
    (tmp_path / "sim.py").touch()
    with pytest.raises(BadRequest, match=r"would both be at sim\.py"):
        document_of({"run": ["python3", "sim.py"], "data": ["../sim.py"]}, {}, local=True)
    assert list(landed({"run": ["python3", "sim.py"], "data": ["sim.py", str(here / "sim.py")]})) == ["sim.py"]
    with pytest.raises(BadRequest, match=r"would both be at sim\.py"):
        document_of({"run": "true", "workdir": ".", "data": ["../sim.py"]}, {}, local=True)


def test_a_folder_is_brought_once_with_the_files_that_the_command_names(here: Path) -> None:
    (here / ".subletignore").write_text("# large\nsub/\n!conf.yaml\n")
    (here / ".env").write_text("SECRET=1")
    (here / ".git").mkdir()
    prepared = prepare({"run": ["python3", "sim.py", "sub/x.csv"], "workdir": "."}, {}, local=True)
    folder = prepared.files.folder
    assert folder
    assert (folder.secrets, folder.holds("sim.py"), folder.holds("sub/x.csv")) == ((".env",), True, False)
    assert prepared.document["workdir"]["location"] == str(here)
    assert "sub/" in prepared.document["workdir"]["ignore"]
    assert [item["path"] for item in prepared.document["data"]] == ["sub/x.csv"], "named by the command all the same"
    (here / ".subletignore").write_text("!.env\n")
    kept = prepare({"run": "true", "workdir": "."}, {}, local=True).files.folder
    assert kept
    assert kept.secrets == ()


def test_a_folder_comes_without_the_state_of_sublet_itself(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBLET_HOME", str(here / "sub" / "a [b]*" / "home"))
    for name in ("a [b]*/home/sublet.db", "a [b]*/kept"):
        (here / "sub" / name).parent.mkdir(parents=True, exist_ok=True)
        (here / "sub" / name).touch()
    folder = prepare({"run": "true", "workdir": "."}, {}, local=True).files.folder
    assert folder
    assert (folder.holds("sub/a [b]*/kept"), folder.holds("sub/a [b]*/home/sublet.db")) == (True, False)


def test_a_folder_that_is_too_large_names_its_largest_entries(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBLET_WORKDIR_LIMIT", "10KiB")
    with (here / "model.bin").open("wb") as file:
        file.truncate(1 << 20)
    with pytest.raises(BadRequest, match="has 1 MiB, and 10 KiB is the most") as caught:
        document_of({"run": "true", "workdir": "."}, {}, local=True)
    assert "model.bin (1 MiB)" in caught.value.advice
    assert "SUBLET_WORKDIR_LIMIT=1GiB" in caught.value.advice
    (here / ".subletignore").write_text("*.bin\n")
    assert document_of({"run": "true", "workdir": "."}, {}, local=True)["workdir"]["location"] == str(here)


def test_a_link_that_leads_out_of_a_folder_is_refused_and_one_inside_is_followed(here: Path) -> None:
    (here / "inside").symlink_to("sub")
    found = prepare({"run": "true", "workdir": "."}, {}, local=True).files.folder
    assert found
    assert found.holds("inside/x.csv")
    for target, why in (("/etc/hosts", "leads elsewhere"), ("gone", "leads nowhere"), ("..", "leads elsewhere")):
        (here / "link").symlink_to(target)
        with pytest.raises(BadRequest, match=f"the link link in it {why}") as caught:
            document_of({"run": "true", "workdir": "."}, {}, local=True)
        assert ".subletignore" in caught.value.advice
        os.unlink(here / "link")
    (here / "sub" / "up").symlink_to("../sub")
    with pytest.raises(BadRequest, match="in a circle"):
        document_of({"run": "true", "workdir": "."}, {}, local=True)


def test_what_a_service_elsewhere_needs_from_here_is_marked_to_be_sent(here: Path) -> None:
    marked = f"here:{here}/sim.py"
    for more in ({"data": ["sim.py"]}, {"data": {"location": "sim.py"}}):
        assert document_of({"run": "true", **more}, {}, local=False)["data"][0]["location"] == marked
    assert document_of({"run": "true", "workdir": "."}, {}, local=False)["workdir"]["location"] == f"here:{here}"
    prepared = prepare({"run": ["python3", "sim.py"], "data": ["/on/the/gateway", "https://x.org/y"]}, {}, local=False)
    assert prepared.files.names == ["sim.py"]
    assert prepared.document["data"][:2] == ["/on/the/gateway", "https://x.org/y"]
    assert prepared.document["data"][2]["location"] == marked
    assert "data" not in document_of({"run": ["python3", "sim.py"], "stay": True}, {}, local=False)


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"run": "/usr/bin/python3 sim.py --steps 1000000000000000"}, "python3 sim.py --steps 100000…"),
        ({"notebook": "https://x.org/n/fit.ipynb"}, "fit.ipynb"),
        ({"bag": {"template": ["fit", "{n}"], "grid": {"n": [1]}}}, "fit {n}"),
        ({"bag": ["fit 1", "fit 2"]}, "fit 1"),
        ({"bag": [["fit", 1]]}, "fit 1"),
        ({"bag": {"tasks": [{"argv": ["fit", "3"]}]}}, "fit 3"),
        ({"interactive": "shell"}, "shell"),
        ({"interactive": True}, "lab"),
        ({"image": "ghcr.io/a/tool:3"}, "tool:3"),
        ({"run": "true", "name": "mine"}, "mine"),
    ],
)
def test_a_request_has_a_name_by_itself(document: dict[str, Any], name: str) -> None:
    assert document_of(document, {}, local=False)["name"] == name


def test_a_request_in_a_file_is_called_like_the_file_unless_it_says(tmp_path: Path) -> None:
    (tmp_path / "morning.yaml").write_text("run: echo hello\n")
    assert document_of(tmp_path / "morning.yaml", {}, local=True)["name"] == "morning"
    assert document_of(tmp_path / "morning.yaml", {"run": ["fit"]}, local=True)["name"] == "fit"
