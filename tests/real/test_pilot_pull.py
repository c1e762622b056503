"""A site that fetches requests for leases itself: somebody else's machine and account, and nobody signs in there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.access_points import Person
from tests.real.leased import Lessee
from tests.sites import Site

pytestmark = [pytest.mark.htcondor, pytest.mark.engines]


def test_a_site_answers_a_request_with_a_node_of_its_own_and_is_left_as_it_was(ap_site: Site) -> None:
    lessee, partner = Lessee(ap_site, "inviting"), Person(ap_site, "partner", user="rival")
    lessee.settles('renew = "1s"', f'address = "{ap_site.facts["addresses"]["ap"]}"')
    try:
        lessee.starts_service()
        lessee.typed("pilot", "invite", "partner", "--out", "partner.invitation")
        invitation = partner.file("partner.invitation")
        shutil.copy(lessee.file("partner.invitation"), invitation)
        shutil.chown(invitation, Path(partner.place).stat().st_uid)
        amounts = ("--nodes", "1", "--cores", "1", "--memory", "512MiB", "--lifetime", "10m", "--idle", "10m")
        lessee.typed("annex", "create", "pulled", "--system", "partner", *amounts, "--yes")
        annex = str(lessee.annex("pulled")["id"])

        lessee.typed("pilot", "invite", "partner", "--anew")
        refused = partner.types("pilot", "pull", "partner.invitation", "--once")
        assert refused.returncode == 1
        assert "No such site is invited" in refused.stderr
        lessee.typed("pilot", "invite", "partner", "--out", "partner.invitation")
        shutil.copyfile(lessee.file("partner.invitation"), invitation)

        words = partner.words("sublet", "pilot", "pull", "partner.invitation", "--once", "--every", "1s")
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pulling:
            ap_site.wait(lambda: len(lessee.slots(annex)) == 1, 60)
            job = lessee.done(lessee.submits("id -un", annex))
            assert lessee.file(f"{job['ClusterId']}.out").read_text() == "rival\n"
            lessee.typed("annex", "shutdown", "pulled")
            assert "1 node with 1 core for" in pulling.communicate(timeout=60)[0]
        assert lessee.ends("pulled")["why"] == "researcher shut it down"
        assert partner.did("sh", "-c", "ls .sublet/pulled; ls -d /tmp/sublet-* 2>/dev/null || :") == ""
        lessee.typed("pilot", "withdraw", "partner")
    finally:
        lessee.types("annex", "setup", "--stop")
        lessee.types("down")
