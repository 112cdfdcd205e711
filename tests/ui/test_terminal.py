"""The cockpit in a real pseudo-terminal: opening, leaving, signals, and what is sent when nothing changes."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from tests.ui.recorded import record_run

if sys.platform == "win32":  # pragma: no cover
    pytest.skip("needs pseudo-terminals", allow_module_level=True)

import fcntl
import termios

LEFT_THE_SCREEN = b"\x1b[?1049l"
KITTY_KEYS_ON = b"\x1b[>"


class Terminal:
    """A cockpit on the slave side of a pseudo-terminal."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.descriptor = descriptor
        self.output = b""

    def read(self, within_s: float) -> bytes:
        """What comes next; empty when nothing does in time."""
        if not select.select([self.descriptor], [], [], within_s)[0]:
            return b""
        try:
            data = os.read(self.descriptor, 1 << 16)
        except OSError:
            return b""
        self.output += data
        return data

    def until(self, text: bytes, within_s: float = 30.0) -> None:
        """Read until the text came."""
        deadline = monotonic() + within_s
        while text not in self.output:
            if monotonic() > deadline:
                pytest.fail(f"{text!r} did not come; last was {self.output[-400:]!r}")
            self.read(0.1)

    def quiet(self, for_s: float, within_s: float = 30.0) -> bool:
        """Whether nothing was sent for so long, at some time within the limit."""
        deadline = monotonic() + within_s
        while monotonic() < deadline:
            if not self.read(for_s):
                return True
        return False

    def send(self, keys: bytes) -> None:
        """Type."""
        os.write(self.descriptor, keys)

    def status(self, within_s: float = 10.0) -> int:
        """The exit status of the cockpit, which must end in time."""
        deadline = monotonic() + within_s
        while monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            self.read(0.05)
        pytest.fail("the cockpit did not end")

    def hang_up(self) -> None:
        """Close the terminal, as a dropped connection does."""
        os.close(self.descriptor)
        self.descriptor = -1


@contextmanager
def cockpit(*arguments: str, **environment: str) -> Iterator[Terminal]:
    """A cockpit of 120x36; whatever happens, it is gone afterwards."""
    command = [sys.executable, "-m", "needle_tui", *arguments]
    pid, descriptor = pty.fork()
    if pid == 0:  # pragma: no cover
        os.execve(sys.executable, command, {**os.environ, "TERM": "xterm-256color", **environment})
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
    terminal = Terminal(pid, descriptor)
    try:
        yield terminal
    finally:
        if terminal.pid:
            os.kill(terminal.pid, signal.SIGKILL)
            os.waitpid(terminal.pid, 0)
        if terminal.descriptor >= 0:
            os.close(terminal.descriptor)


def test_quitting_restores_the_terminal_and_says_that_runs_go_on(runs_directory: Path) -> None:
    record_run(runs_directory, "alive", phase="running", steps=40)
    with cockpit("--runs", str(runs_directory), "watch", "latest") as terminal:
        terminal.until(b"alive")
        terminal.until("●".encode() + b" 1")
        terminal.send(b"q")
        assert terminal.status() == 0
        assert LEFT_THE_SCREEN in terminal.output
        assert b"1 run goes on. Come back with: needle-tui watch" in terminal.output


def test_terminate_restores_the_terminal(runs_directory: Path) -> None:
    with cockpit("--runs", str(runs_directory), "watch-nothing") as refused:
        assert refused.status() == 2
    record_run(runs_directory, "tools")
    with cockpit("--runs", str(runs_directory), "watch") as terminal:
        terminal.until(b"tools")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.status() == 128 + signal.SIGTERM
        assert LEFT_THE_SCREEN in terminal.output


def test_a_dropped_connection_ends_the_cockpit(runs_directory: Path) -> None:
    record_run(runs_directory, "tools")
    with cockpit("--runs", str(runs_directory), "watch") as terminal:
        terminal.until(b"tools")
        terminal.hang_up()
        assert os.waitstatus_to_exitcode(_wait(terminal)) == 128 + signal.SIGHUP


def test_nothing_is_sent_while_nothing_changes(runs_directory: Path) -> None:
    record_run(runs_directory, "tools")
    with cockpit("--runs", str(runs_directory), "watch") as terminal:
        terminal.until(b"tools")
        assert terminal.quiet(for_s=4.0)
        terminal.send(b"q")
        assert terminal.status() == 0


@pytest.mark.parametrize(("connection", "kitty"), [("", True), ("10.0.0.1 22 10.0.0.2 22", False)])
def test_over_ssh_the_keyboard_is_left_as_it_is(runs_directory: Path, connection: str, kitty: bool) -> None:
    record_run(runs_directory, "tools")
    with cockpit("--runs", str(runs_directory), "watch", SSH_CONNECTION=connection) as terminal:
        terminal.until(b"tools")
        assert (KITTY_KEYS_ON in terminal.output) == kitty


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rums", "x"], "did you mean --runs?"),
        (["wach"], "unknown command 'wach'"),
        (["watch", "nothing-like-it"], "no run 'nothing-like-it'"),
        (["devices", "more"], "did you mean: watch RUN?"),
        ([], "needs a terminal"),
    ],
)
def test_errors_are_plain_words_with_status_two(
    runs_directory: Path, arguments: list[str], words: str
) -> None:
    result = _run("--runs", str(runs_directory), *arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_help_and_version_load_neither_the_interface_nor_numpy() -> None:
    program = (
        "import sys\nfrom needle_tui.__main__ import main\n"
        "try:\n    main(['--version'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'textual', 'numpy', 'jax', 'psutil'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["needle-tui 0.1.0", "[]"]


def test_the_cockpit_loads_no_jax_on_any_screen(runs_directory: Path) -> None:
    record_run(runs_directory, "tools")
    program = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from needle_tui.app import NeedleApp\nfrom needle_tui.context import Context\n"
        "async def visit():\n"
        "    app = NeedleApp(Context(Path(sys.argv[1]), probe=lambda known, tell: known))\n"
        "    async with app.run_test(size=(120, 36)) as pilot:\n"
        "        for key in '2341':\n"
        "            await pilot.press(key)\n"
        "            await pilot.pause(0.3)\n"
        "asyncio.run(visit())\n"
        "print(sorted({'jax', 'jaxlib', 'flax', 'optax'} & set(sys.modules)), flush=True)\n"
        "import os; os._exit(0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(runs_directory)], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "needle_tui", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def _wait(terminal: Terminal) -> int:
    deadline = monotonic() + 10
    while monotonic() < deadline:
        pid, status = os.waitpid(terminal.pid, os.WNOHANG)
        if pid:
            terminal.pid = 0
            return status
        select.select([], [], [], 0.05)
    pytest.fail("the cockpit did not end")
