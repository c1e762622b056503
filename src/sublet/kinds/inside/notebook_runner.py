"""Runs a notebook with papermill: `executed.ipynb` and `executed.html`, even if it raises. Travels with the job.

It is started by any Python, and continues in the one that papermill belongs to.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

EXECUTED, PAGE = "executed.ipynb", "executed.html"
KERNEL = "python3"
PYTHON = ("python", "python3", "ipython", "ipython3")  # what notebooks call the language
LONGEST = 107 - len("-12345")  # bytes of the common prefix of socket paths


def say(text: str) -> None:
    """Print a message for the user."""
    sys.stderr.write(f"sublet: {text}\n")
    sys.stderr.flush()


def python_of(papermill: str) -> str:
    """Return the Python that papermill is installed for: by its `#!` line, or the one beside it."""
    with open(papermill, "rb") as file:
        first = file.readline().decode(errors="replace").strip()
    named = first.removeprefix("#!").strip()
    if first.startswith("#!") and "python" in os.path.basename(named) and os.path.exists(named):
        return named
    return os.path.join(os.path.dirname(os.path.realpath(papermill)), "python3")


def notebook_in(folder: str) -> str:
    """Return the file that was staged."""
    return os.path.join(folder, sorted(os.listdir(folder))[0])


class NotInstalled(Exception):
    """The requirements could not be installed; the message has the installer's last words."""


def install(requirements: list[str], environment: str) -> str:
    """Make an environment for the session with the requirements, on top of what is installed; return its Python."""
    listed = ".sublet/requirements.txt"
    with open(listed, "w", encoding="utf-8") as file:
        file.write("\n".join(requirements) + "\n")
    python = f"{environment}/bin/python"
    beside = f"{os.environ.get('PATH', '')}{os.pathsep}{os.path.dirname(sys.executable)}"
    uv = shutil.which("uv", path=beside)
    call([sys.executable, "-m", "venv", *(["--without-pip"] if uv else []), environment])
    library = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    )
    with open(os.path.join(library.strip(), "here.pth"), "w", encoding="utf-8") as file:
        file.write(sysconfig.get_path("purelib") + "\n")  # the packages of papermill's own Python, above all the kernel
    say(f"installing {', '.join(requirements)}")
    if uv:
        call([uv, "pip", "install", "--quiet", "--python", python, "--requirement", listed])
    else:
        call([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", listed])
    return python


def call(argv: list[str]) -> None:
    """Run an installer's command; raise NotInstalled if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise NotInstalled((done.stderr or done.stdout).strip()[-2000:])


def offer_kernel(python: str, folder: str) -> None:
    """Register this Python as Jupyter's kernel `python3`."""
    kernel = {"argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python"}
    os.makedirs(f"{folder}/kernels/{KERNEL}", exist_ok=True)
    with open(f"{folder}/kernels/{KERNEL}/kernel.json", "w", encoding="utf-8") as file:
        json.dump({**kernel, "display_name": "Python 3"}, file)
    os.environ["JUPYTER_PATH"] = folder


def kernel_for(path: str) -> str | None:
    """Return our kernel for a Python notebook, whatever its author's is called; None for the one that it names."""
    with open(path, encoding="utf-8") as file:
        about = read_object(json.load(file), "metadata")
    language = read_object(about, "kernelspec").get("language") or read_object(about, "language_info").get("name")
    return KERNEL if str(language or "python").lower() in PYTHON else None


def read_object(parent: object, name: str) -> dict[str, Any]:
    """Return an object within another one; an empty one if something else stands there."""
    value = parent.get(name) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}


def code_of(name: str, value: str) -> int:
    """Return the exit code of a notebook that raised this: 1, or the code of sys.exit."""
    if name != "SystemExit" or not value.strip().lstrip("-").isdigit():
        return 1
    return int(value) & 0xFF


def connection(kernel: str | None) -> dict[str, Any]:
    """Return the settings to reach a kernel by sockets in our own directory, as other users could read from its ports.

    Only for Python's kernels, which support this, and if the sockets' paths aren't too long.
    """
    begin = os.path.join(os.environ["JUPYTER_RUNTIME_DIR"], "kernel")
    if kernel != KERNEL or len(os.fsencode(begin)) > LONGEST:
        return {}
    from traitlets.config import Config

    return {"config": Config({"KernelManager": {"transport": "ipc", "ip": begin}})}


def execute(plan: dict[str, Any]) -> int:
    """Execute the notebook; return 1 or its exit code if it raised, with the exception as the last line of stderr."""
    try:
        import papermill  # type: ignore[import-untyped]
        from papermill.exceptions import PapermillExecutionError  # type: ignore[import-untyped]
    except ImportError:
        say("there is no papermill, by which a notebook is executed: take an image that has it")
        return 127

    path = notebook_in(plan["notebook"])
    try:
        kernel = kernel_for(path)
        papermill.execute_notebook(
            path,
            EXECUTED,
            parameters=plan["parameters"],
            kernel_name=kernel,
            language="python" if kernel == KERNEL else None,  # handmade notebooks often don't name one
            progress_bar=False,
            stdout_file=sys.stdout,
            stderr_file=sys.stderr,
            cwd=os.getcwd(),
            **connection(kernel),
        )
    except PapermillExecutionError as raised:
        where = f"cell {raised.exec_count}" if raised.exec_count else "a cell"
        say(f"{where} of the notebook raised an exception; {EXECUTED} has what was executed until then")
        sys.stderr.write(f"{raised.ename}: {raised.evalue}\n")
        return code_of(str(raised.ename), str(raised.evalue))
    except Exception as why:  # what is no notebook may make papermill and nbformat raise anything
        say(f"the notebook could not be executed: {type(why).__name__}: {why}")
        return 1
    except KeyboardInterrupt:
        say("the notebook was stopped")
        return 128 + signal.SIGTERM
    return 0


def make_page() -> None:
    """Convert the executed notebook to HTML, for people without Jupyter; a failure doesn't change the exit code."""
    try:
        from nbconvert import HTMLExporter

        page, _ = HTMLExporter().from_filename(EXECUTED)  # type: ignore[no-untyped-call]
    except ImportError:
        say(f"nbconvert is not installed, so there is no {PAGE}")
        return
    except Exception as why:  # someone else's installation may be broken in any way
        say(f"nbconvert could not make {PAGE}: {type(why).__name__}: {why}")
        return
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)


def main() -> int:
    """Run the notebook that `.sublet/notebook.json` describes."""
    with open(".sublet/notebook.json", encoding="utf-8") as file:
        plan = json.load(file)
    papermill = shutil.which(plan["papermill"] or "papermill")
    python = python_of(papermill) if papermill else sys.executable
    if sys.executable != python and "SUBLET_AGAIN" not in os.environ:
        os.execve(python, [python, sys.argv[0]], {**os.environ, "SUBLET_AGAIN": "1"})  # noqa: S606 (as meant)
    os.environ.pop("SUBLET_AGAIN", None)
    # Their files are removed with the session.
    os.environ["JUPYTER_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="jupyter-")
    os.environ["IPYTHONDIR"] = f"{plan['own']}/ipython"
    os.makedirs(os.environ["IPYTHONDIR"], exist_ok=True)
    try:
        if plan["requirements"]:
            offer_kernel(install(plan["requirements"], plan["environment"]), plan["own"])
    except NotInstalled as why:
        say(f"the requirements could not be installed:\n{why}")
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = execute(plan)
    if os.path.exists(EXECUTED):
        make_page()
    return code
