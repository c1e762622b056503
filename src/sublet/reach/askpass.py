"""What ssh runs when it has a question: it passes the question on, and the answer back, over a private socket.

It is run as a file by a bare interpreter, so it imports nothing of Sublet's.
"""

import os
import socket
import sys

SOCKET = "SUBLET_ASKPASS_SOCKET"
ANSWERED = b"1"


def main() -> int:
    """Ask, print the answer for ssh to read, and end with 1 if there is none."""
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
