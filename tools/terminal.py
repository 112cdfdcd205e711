"""A real pseudo-terminal with a program in it: what tests and benchmarks of the cockpit look at."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence

import psutil
import pyte

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "f1": "\x1bOP",
    "f5": "\x1b[15~",
    **{f"ctrl+{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}


class Terminal:
    """One program on a terminal of `columns` x `rows`; output is read only when asked, as by a slow line."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 120,
        rows: int = 36,
        environment: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] = ".",
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.received_bytes = 0
        self.started = time.perf_counter()
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe(command[0], list(command), dict(environment or os.environ))
        self.resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size; the program gets SIGWINCH."""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, *keys: str) -> None:
        """Send keys by name, or text as typed."""
        os.write(self._master, "".join(KEYS.get(key, key) for key in keys).encode())

    def pump(self, for_s: float) -> int:
        """Read what comes within this time; returns the bytes that came."""
        before, deadline = self.received_bytes, time.perf_counter() + for_s
        while (left := deadline - time.perf_counter()) > 0:
            if not select.select([self._master], [], [], left)[0]:
                break
            if not self._read():
                break
        return self.received_bytes - before

    def wait_for(self, text: str, within_s: float = 20.0) -> float:
        """Seconds from the start until `text` stands on the screen. Raises TimeoutError with the screen."""
        deadline = time.perf_counter() + within_s
        while text not in self.text():
            if time.perf_counter() > deadline:
                raise TimeoutError(
                    f"{text!r} did not appear within {within_s:g} s; the screen:\n{self.text()}"
                )
            self.pump(0.05)
        return time.perf_counter() - self.started

    def text(self) -> str:
        """The screen as lines of text."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def cpu_seconds(self) -> float:
        """CPU time that the program has used so far."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    def signal(self, number: int) -> None:
        """Send a signal to the program's process group, as the terminal driver does."""
        os.killpg(os.getpgid(self.pid), number)

    def hang_up(self) -> int:
        """Close the line as a dropped SSH connection does; returns the wait status of the program."""
        os.close(self._master)
        self._master = -1
        return self.wait()

    def wait(self, within_s: float = 20.0) -> int:
        """The wait status of the program once it has ended."""
        deadline = time.perf_counter() + within_s
        while time.perf_counter() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return status
            if self._master >= 0:
                self.pump(0.02)
            else:
                time.sleep(0.02)
        raise TimeoutError(f"the program did not end within {within_s:g} s; the screen:\n{self.text()}")

    def close(self) -> None:
        """End the program whatever it does; for the end of a test."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> bool:
        try:
            content = os.read(self._master, 65536)
        except OSError:
            return False
        self.received_bytes += len(content)
        self._stream.feed(content)
        return bool(content)
