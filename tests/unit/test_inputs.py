"""Inputs that jobs share: which they are, and how a job names their copies."""

from __future__ import annotations

from sublet.annexes.model.inputs import LARGE, InputCopies, NamedInput, choose_shared, combine_digests, rewritten
from sublet.annexes.pilots.inputs import WaitingJob, forget_copies, needs_look, read_waiting, say_pulled, send_files
from sublet.platforms.htcondor.commands import HELD, IDLE

IMAGE = "tool.sif"
NAMED = NamedInput("/work", IMAGE, ("data/big.dat", "small.txt", "https://example.org/x", IMAGE), "a=b")
PLACE = "/scratch/kept/sha256-12"
SIZES = {IMAGE: 5, "data/big.dat": LARGE, "small.txt": 7}


def test_an_image_and_large_files_are_shared_and_small_ones_are_sent() -> None:
    assert choose_shared(NAMED, SIZES) == (IMAGE, "data/big.dat")
    assert choose_shared(NAMED, {"small.txt": 7}) == (), "what is not here can't be shared"
    odd = NamedInput("/work", "", ("$$(x)", "a]b"))
    assert odd.candidates == ()


def test_an_image_that_is_not_sent_is_the_nodes_own() -> None:
    assert choose_shared(NamedInput("/work", "/opt/tool.sif", ("small.txt",)), {"small.txt": 7}) == ()


def test_a_job_takes_the_copy_where_its_lease_has_one_and_is_sent_the_file_elsewhere() -> None:
    told = rewritten(
        NAMED, [InputCopies(("l1", "l2"), {IMAGE: f"{PLACE}/content", "data/big.dat": "/k/sha256-3/content"})]
    )
    assert told["ContainerImage"].startswith("$$([ ((TARGET.SubletFarMachine =?= undefined && ")
    assert told["ContainerImage"].endswith(f'"l1,l2")) ? "{PLACE}/content" : "tool.sif") ])')
    assert '? "file:///k/sha256-3/sha256-3,small.txt,https://example.org/x" : ' in told["TransferInput"]
    assert told["TransferInput"].endswith(': "data/big.dat,small.txt,https://example.org/x,tool.sif")) ])')
    name = PLACE.rpartition("/")[2]
    assert set(told["TransferInputRemaps"].split(";")) == {"a=b", "sha256-3=big.dat", f"{name}=tool.sif"}


def test_a_node_behind_a_spool_is_sent_a_note_of_each_copy_and_all_else_as_it_is() -> None:
    copies = {IMAGE: f"{PLACE}/content", "data/big.dat": "/k/sha256-3/content"}
    told = rewritten(NAMED, [InputCopies(("l1",), copies, frozenset())])
    name = PLACE.rpartition("/")[2]
    notes = f"subletkept:///k/sha256-3/sha256-3,small.txt,https://example.org/x,subletkept://{PLACE}/{name}"
    far = told["TransferInput"].partition("TARGET.SubletFarMachine =!= undefined")[2]
    assert f'? "{notes}" : ' in far
    assert "SubletFarMachine =!= undefined" not in told["ContainerImage"], "there it is a file of its sandbox"
    tree = rewritten(
        NamedInput("/work", "", ("env",)), [InputCopies(("l1",), {"env": "/k/x/content"}, frozenset({"env"}))]
    )
    assert '? "subletkeptdir:///k/x/x" : "env"' in tree["TransferInput"]


def test_large_directories_and_programs_are_shared_and_what_a_job_places_itself_is_not() -> None:
    named = NamedInput("/work", "", ("env", "in/", "old"), "old=new", "/work/solver")
    sizes = {"env": LARGE, "in/": LARGE, "old": LARGE, "/work/solver": LARGE}
    assert choose_shared(named, sizes, ["env", "in/"]) == ("env", "in/", "/work/solver")
    deep = NamedInput("/work", "", ("a/big.dat", "/data/big.dat", "top.dat"), keeps_paths=True)
    assert deep.candidates == ("/data/big.dat", "top.dat")
    assert choose_shared(NamedInput("/work", "image", ("image",)), {"image": LARGE}, ["image"]) == (), (
        "an unpacked image is no file"
    )


def test_a_directory_is_unpacked_and_a_program_copied_where_they_are_kept() -> None:
    named = NamedInput("/work", "", ("env", "in/"), "", "/work/solver")
    paths = {"env": "/k/sha256-1/content", "in/": "/k/sha256-2/content", "/work/solver": "/k/sha256-3/content"}
    told = rewritten(named, [InputCopies(("l1",), paths, frozenset({"env", "in/"}))])
    there = "subletdir:///k/sha256-1/sha256-1,subletdir:///k/sha256-2/sha256-2"
    assert f'? "{there}" : ((TARGET.SubletFarMachine =!= undefined' in told["TransferInput"]
    assert 'stringListMember("subletdir", TARGET.HasFileTransferPluginMethods ?: "")' in told["TransferInput"]
    assert '? "subletfile:///k/sha256-3/solver" : ((TARGET.SubletFarMachine =!= undefined' in told["Cmd"]
    assert told["Cmd"].endswith('? "subletkept:///k/sha256-3/solver" : "/work/solver")) ])'), "it is called what it was"
    assert told["TransferInputRemaps"] == "", "an archive brings its names with it"
    assert rewritten(named, [])["Cmd"] == "/work/solver"


def test_only_an_executable_that_was_large_and_is_sent_is_looked_at() -> None:
    ad = {"ClusterId": 1, "ProcId": 0, "Iwd": "/work", "Cmd": "/work/solver", "ExecutableSize": LARGE >> 10}
    assert read_waiting(ad).named.program == "/work/solver"
    assert read_waiting({**ad, "TransferExecutable": False}).named.program == ""
    assert read_waiting({**ad, "ExecutableSize": 100}).named.program == ""
    kept = {"SubletInputs": "shared", "SubletProgram": "/work/solver", "Cmd": "$$([ x ])"}
    assert read_waiting({**ad, **kept}).named.program == "/work/solver"
    assert read_waiting({**ad, "SubletInputs": "shared"}).named.program == "", "told by an older Sublet"


def test_without_copies_a_job_is_as_it_was_submitted() -> None:
    told = rewritten(NAMED, [InputCopies(("l1",), {})])
    assert told == {
        "ContainerImage": IMAGE,
        "TransferInput": ",".join(NAMED.files),
        "TransferInputRemaps": "a=b",
    }


def test_what_a_job_said_first_is_what_counts() -> None:
    ad = {"ClusterId": 1, "ProcId": 0, "Iwd": "/work", "ContainerImage": IMAGE, "TransferInput": f"a, {IMAGE}"}
    first = read_waiting({**ad, "SubletTarget": "x"})
    assert (first.named.image, first.named.files, first.seen) == (IMAGE, ("a", IMAGE), "")
    kept = {"SubletInputs": "shared", "SubletImage": IMAGE, "SubletFiles": f"a,{IMAGE}", "SubletReady": "l1"}
    again = read_waiting({**ad, **kept, "ContainerImage": "$$([ x ])", "TransferInput": "$$([ y ])"})
    assert (again.named, again.ready) == (first.named, "l1")
    pulled = read_waiting({**ad, "ContainerImage": "docker://alpine", "WantDockerImage": True})
    assert (pulled.named.image, pulled.named.address) == ("", "docker://alpine")
    told = read_waiting({**ad, **kept, "SubletImage": "docker://alpine", "ContainerImage": "$$([ x ])"})
    assert told.named.address == "docker://alpine"
    assert read_waiting({**ad, "ContainerImage": "https://example.org/tool.sif"}).named.address == "", "it is an input"


def test_an_image_of_a_registry_is_used_where_it_lies_also_behind_a_spool() -> None:
    address = "docker://example.org/tool:1"
    named = NamedInput("/work", "", ("small.txt",), address=address)
    path = "/scratch/kept/oci-sha256-12/content"
    told = rewritten(named, [InputCopies(("l1",), {address: path})])
    assert told["ContainerImage"].endswith(f'"l1")) ? "{path}" : "{address}") ])')
    assert "SubletFarMachine" not in told["ContainerImage"]
    assert "TARGET.HasDocker =!= true" in told["ContainerImage"], "Docker runs no file"
    assert (told["TransferInput"], told["TransferInputRemaps"]) == ("small.txt", "")
    assert rewritten(named, [])["ContainerImage"] == address
    assert named.patience > NAMED.patience, "it has to be pulled and made there"


def test_the_image_of_a_session_is_used_where_it_lies_and_nothing_else_of_it_is_shared() -> None:
    image = "../../shared/sha256-7"
    files = ("../../program", "../../data", image)
    ad = {"ClusterId": 1, "ProcId": 0, "Iwd": "/s/parts/0", "SubletSession": "k", "SubletKept": image}
    named = read_waiting({**ad, "TransferInput": ",".join(files)}).named
    assert (named.image, named.candidates) == (image, (image,))
    assert choose_shared(named, {"../../data": LARGE, image: 5}) == (image,)
    told = rewritten(named, [InputCopies(("l1",), {image: "/k/sha256-7/content"})])
    assert told.keys() == {"SubletKept", "TransferInput"}
    assert told["SubletKept"].endswith(f'"l1")) ? "/k/sha256-7/content" : "{image}") ])')
    assert told["TransferInput"].endswith(f'? "../../program,../../data" : "{",".join(files)}") ])')
    kept = {"SubletInputs": "shared", "SubletImage": image, "SubletFiles": ",".join(files)}
    assert read_waiting({**ad, **kept, "SubletKept": "$$([ x ])", "TransferInput": "$$([ y ])"}).named == named
    assert rewritten(named, []) == {"SubletKept": image, "TransferInput": ",".join(files)}


def test_a_job_says_why_its_node_pulls_its_image() -> None:
    named = NamedInput("/work", "", (), address="docker://example.org/tool:1")
    assert say_pulled(named, 'no $$(way)\n to "it"') == {"SubletPulled": '"no __(way) to \\"it\\""'}
    assert say_pulled(named, "") == {"SubletPulled": "undefined"}
    assert say_pulled(NAMED, "") == {}


def test_a_copy_is_taken_only_while_its_file_is_known_to_be_the_same() -> None:
    told = rewritten(NAMED, [InputCopies(("l1",), {IMAGE: f"{PLACE}/content"})])
    for name in ("ContainerImage", "TransferInput"):
        assert "time() - (MY.SubletLooked ?: 0) <= 60 && " in told[name]


def test_other_content_is_another_thing_to_be_told() -> None:
    before = combine_digests({"a": "sha256:1", "b": "sha256:2"})
    assert before == combine_digests({"b": "sha256:2", "a": "sha256:1"})
    assert before != combine_digests({"a": "sha256:1", "b": "sha256:3"})
    assert combine_digests({}) == ""


def test_a_job_whose_file_has_changed_forgets_all_copies() -> None:
    plain = NamedInput("/work", "", ("big.dat",))
    changes = forget_copies(plain, 900)
    assert changes == {
        "TransferInput": '"big.dat"',
        "TransferInputRemaps": "undefined",
        "SubletReady": '""',
        "SubletContent": '""',
        "SubletUntil": "900",
    }
    assert send_files(plain)["SubletReady"] == "undefined", "nothing holds it back"


def test_a_job_is_looked_at_again_when_it_is_released_or_off_its_node() -> None:
    def waits(since: int, looked: int, status: int = IDLE) -> bool:
        return needs_look(WaitingJob("1.0", "x", NAMED, status=status, since=since, looked=looked), 110)

    assert waits(since=100, looked=0)
    assert not waits(since=100, looked=101)
    assert waits(since=105, looked=101), "it began to wait after the last look"
    assert waits(since=105, looked=105), "in the same second: nobody knows which was first"
    assert waits(since=20, looked=90), "that was long ago"
    assert not waits(since=105, looked=101, status=HELD), "it is looked at when it is released"


def test_a_job_that_may_use_no_lease_is_another_than_one_that_waits_for_none() -> None:
    ad = {"ClusterId": 1, "ProcId": 0, "SubletInputs": "shared", "SubletReady": ""}
    assert read_waiting(ad).waits
    assert not read_waiting({**ad, "SubletReady": "/Expr(undefined)/"}).waits
    assert not read_waiting({"ClusterId": 1, "ProcId": 0}).waits


def test_a_session_that_names_an_image_of_a_registry_is_told_where_systems_have_it_for_good() -> None:
    address = "docker://shop/tool@sha256:7"
    ad = {
        "ClusterId": 1,
        "ProcId": 0,
        "Iwd": "/s",
        "SubletSession": "k",
        "SubletKept": address,
        "TransferInput": "work",
    }
    waiting = read_waiting(ad)
    assert (waiting.named.address, waiting.named.image, waiting.named.candidates) == (address, "", ())
    told = rewritten(waiting.named, [InputCopies(("l1",), {address: "/kept/data-9/content"})])
    assert set(told) == {"SubletKept"}, "its files travel as they are"
    assert '"/kept/data-9/content"' in told["SubletKept"]
    assert "SubletLooked" not in told["SubletKept"], "an image that is named by its digest never changes"
    assert rewritten(waiting.named, []) == {"SubletKept": address}
