"""A file that is named relative to here is found where the document is; what is named otherwise stays as it is."""

from pathlib import Path

from sublet.client.documents import document_of


def test_files_that_are_there_are_named_by_their_whole_path(tmp_path: Path) -> None:
    for name in ("book.ipynb", "my tool.sif", "cube.fits"):
        (tmp_path / name).write_text("")
    (tmp_path / "job.yaml").write_text("{notebook: book.ipynb, data: [cube.fits], image: my tool.sif}")
    found = document_of(tmp_path / "job.yaml", {}, local=True)
    assert found["notebook"] == str(tmp_path / "book.ipynb")
    assert found["data"] == [{"location": str(tmp_path / "cube.fits"), "path": "cube.fits", "writable": True}]
    assert found["image"] == f"file://{tmp_path}/my%20tool.sif"
    assert document_of({"image": "my tool.sif"}, {}, local=False)["image"] == "my tool.sif"


def test_an_image_by_a_whole_path_is_where_it_runs_and_a_reference_is_a_reference(tmp_path: Path) -> None:
    (tmp_path / "here.sif").write_text("")
    for place in (f"{tmp_path}/here.sif", "alpine:3", "docker://ghcr.io/a/b", "docker-archive:/x.tar"):
        assert document_of({"image": place}, {}, local=True)["image"] == place
    several = {"image": {"locations": ["alpine"], "digest": "sha256:…"}}
    assert document_of(several, {}, local=True) == several
