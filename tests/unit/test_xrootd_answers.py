"""Answers of XRootD's client and servers are read as they are written."""

import pytest

from sublet.movers.digests import read_digest
from sublet.movers.xrootd_commands import (
    RemoteStat,
    XrootdFailed,
    read_checksum,
    read_complaint,
    read_listing,
    read_stat,
)

STAT = """
Path:   /dir/sub/b.bin
Id:     9469015613308416
Size:   5000000
MTime:  2026-11-17 07:46:55
Flags:  {flags}
"""


def test_files_of_a_list_are_read_as_new_and_old_servers_write_them() -> None:
    listed = (
        "-rw-r--r--   root root       2 2026-11-17 07:47:57 /dir/b c+ü%41.bin\n"
        "drwxr-xr-x nobody root    4096 2026-11-17 07:46:55 /dir/sub\n"
        "-r-- 2014-10-09 14:05:15        1024 /dir/sub/old.root\n"
        "dr-x 2014-10-09 14:05:15        4096 /dir/sub/older\n"
    )
    assert read_listing(listed) == [("/dir/b c+ü%41.bin", 2), ("/dir/sub/old.root", 1024)]
    with pytest.raises(XrootdFailed, match="can't be read"):
        read_listing("something else\n")


def test_what_a_path_is_and_which_version_it_has_is_read() -> None:
    version = "2026-11-17 07:46:55 5000000"
    assert read_stat(STAT.format(flags="48 (IsReadable)")) == RemoteStat(5_000_000, is_folder=False, version=version)
    assert read_stat(STAT.format(flags="51 (XBitSet|IsDir|IsReadable)")).is_folder
    with pytest.raises(XrootdFailed):
        read_stat("")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Run: [ERROR] Server responded with an error: [3011] Unable to open /x; no such file (source)\n\n",
            "Unable to open /x; no such file",
        ),
        ("[FATAL] Socket timeout\n", "the server did not answer in time"),
        ("Run: [FATAL] Connection error:  (source)\n", "the server can't be reached"),
        ("xrdcp: error while loading shared libraries\n", "xrdcp: error while loading shared libraries"),
        ("", "the client failed without a word"),
    ],
)
def test_complaints_are_told_without_what_is_meant_for_a_log(text: str, words: str) -> None:
    assert read_complaint(text) == words


def test_checksums_are_read_as_servers_write_them() -> None:
    assert read_checksum("adler32 DB8B2B7D\n") == "adler32:db8b2b7d"
    assert read_checksum("\n") == ""
    assert read_digest("adler32=3da0195") == "adler32:03da0195"
    assert read_digest("UNIXsum=30637, MD5=8//4WGSmlV0nfEGQrvqq4g==") == "md5:f3fff85864a6955d277c4190aefaaae2"
    assert read_digest("md5=not base64, sha-256=") == ""
    assert read_digest("") == ""
