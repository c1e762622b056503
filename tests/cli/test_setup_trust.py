"""Setting up behind a proxy that looks into TLS: pip and uv trust the certificates that SSL_CERT_FILE names."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = str(Path(sys.base_prefix) / "bin" / "python3")
ASKED: list[str] = []
OTHERS = ("PIP_", "UV_", "MAKE", "REQUESTS_", "CURL_")  # whoever runs the tests may have settings of their own


class Nothing(BaseHTTPRequestHandler):
    """An index of packages that has none."""

    def do_GET(self) -> None:
        ASKED.append(self.path)
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """Its address; nobody vouches for it but `proxy.pem`."""
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "keyUsage=digitalSignature",
    ]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "proxy.pem")]
    subprocess.run([*words, "-addext", "basicConstraints=critical,CA:FALSE", *files], check=True, capture_output=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "proxy.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ASKED.clear()
    yield f"https://localhost:{server.server_port}/simple"
    server.shutdown()
    server.server_close()


def test_make_setup_downloads_by_the_certificates_that_ssl_cert_file_names(index: str, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
    environment = kept | {
        "SSL_CERT_FILE": str(tmp_path / "proxy.pem"),
        "NO_PROXY": "localhost",
        "PYTHON": PYTHON,
    }
    environment |= {"PIP_INDEX_URL": index, "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"}
    environment |= {"UV_DEFAULT_INDEX": index, "UV_NO_CONFIG": "1", "UV_NO_CACHE": "1", "UV_HTTP_RETRIES": "0"}
    venv = tmp_path / "venv"
    if subprocess.run([PYTHON, "-c", "import pip"], capture_output=True).returncode == 0:  # its own is tried first
        (tmp_path / "ensurepip.py").write_text("if __name__ == '__main__':\n    raise SystemExit('no second try')\n")
        environment["PYTHONPATH"] = str(tmp_path)
    made = subprocess.run(["scripts/venv", venv], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert "/simple/uv/" in ASKED, made.stderr
    (venv / "bin" / "uv").symlink_to(Path(sys.executable).parent / "uv")
    (venv / ".uv").touch()
    words = ["make", f"VENV={venv}", f"{venv}/.run"]
    made = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert any(path != "/simple/uv/" for path in ASKED), made.stderr
