"""Reports what an image archive is, on the login host that has it: its form and digests.

Travels to the login host: standard library only.
"""

from __future__ import annotations

import sys

from sublet.kinds.inside.image_files import Archive, NotAnImage


def main() -> int:
    """Read the given archive, and check each layer."""
    try:
        archive = Archive(sys.argv[1])
        archive.verify_layers()
        form = "oci-archive" if archive.digests else "docker-archive"
        sys.stdout.write("\n".join([form, *archive.list_digests()]) + "\n")
    except NotAnImage as why:
        sys.stderr.write(f"{why}\n")
        return 65
    return 0


if __name__ == "__main__":
    sys.exit(main())
