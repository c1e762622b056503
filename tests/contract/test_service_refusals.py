"""What is refused is told in the words of whoever asked, with what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sublet.kernel.errors import NotFound
from sublet.platforms import machine
from tests.contract.services import ME, allow, ask, serving

pytestmark = pytest.mark.anyio
HERE = {"here": {"kind": "local"}}


@pytest.mark.parametrize(
    ("wish", "tool"),
    [({"notebook": "https://example.org/n.ipynb"}, "papermill"), ({"interactive": "lab"}, "jupyter-lab")],
)
async def test_a_service_without_notebooks_says_how_to_get_them(
    wish: dict[str, str], tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "TOOLS", ())
    async with serving(tmp_path, platforms=HERE) as service:
        refused = await ask(service, run=None, **wish)
    assert refused.result == "NO"
    (reason,) = refused.reasons
    assert reason.limit.startswith(tool)
    assert "containers only" not in reason.message, "the rest is permitted here"
    assert "pip install 'sublet[notebook]'" in reason.nearest


async def test_a_gateway_advises_nobody_to_install_what_it_would_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "TOOLS", ())
    async with serving(tmp_path, mode="gateway", platforms=HERE) as service:
        await allow(service)
        refused = await ask(service, run=None, notebook="https://example.org/n.ipynb")
    (reason,) = refused.reasons
    assert reason.limit.endswith("Kubernetes, podman, apptainer or docker with an image")
    assert "a gateway runs containers only" in reason.message
    assert "pip install" not in reason.nearest


async def test_what_is_accepted_or_declined_and_not_there_is_no_offer(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        for move in (service.sessions.accept, service.sessions.reject):
            with pytest.raises(NotFound, match="There is no offer ffffffff") as caught:
                await move("ffffffff", ME)
            assert "sublet offers" in caught.value.advice


async def test_files_that_a_platform_can_never_bring_are_a_no_with_their_size(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(bytes(2_000_000))
    cloud = {"kind": "openstack", "auth_url": "https://127.0.0.1:1/v3", "application_credential": "x", "image": "guest"}
    async with serving(tmp_path, platforms={"sky": cloud}) as service:
        refused = await ask(service, data=[f"{tmp_path / 'noise'}"])
    assert refused.result == "NO"
    assert [(reason.field, reason.wanted) for reason in refused.reasons] == [("data", "2000000B")]
