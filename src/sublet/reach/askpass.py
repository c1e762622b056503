"""The askpass program that ssh runs to ask a question: it forwards question and answer over a private socket.

It is run as a file by a bare interpreter, so it can't import anything from Sublet.
"""

import os
import socket
import sys

SOCKET = "SUBLET_ASKPASS_SOCKET"
ANSWERED = b"1"


def main() -> int:
    """Send ssh's question and print the answer; return 1 if there is no answer."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(os.environ[SOCKET])
        asking.sendall(os.fsencode(" ".join(sys.argv[1:])))
        asking.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: asking.recv(4096), b""))
    if not answer.startswith(ANSWERED):
        return 1
    sys.stdout.buffer.write(answer[1:] + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
