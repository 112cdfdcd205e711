"""Real runs with tiny trainers, for the tests of supervisor and readers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from needle.config import FinetuneSettings
from needle.runs.index import create_run
from needle.runs.record import Decision, Plan, RunState, Variable, read_state

_ROOT = Path(__file__).parents[2]
_NOTHING = Decision("none", "a test")

WRITER = """
import os, sys, time
from pathlib import Path
from needle.runs.writer import RunWriter
run = Path(sys.argv[1])
writer = RunWriter(run, int(os.environ["NEEDLE_ATTEMPT"]))
def wait_until(condition):
    while not condition():
        time.sleep(0.01)
"""
FINISHES = (
    WRITER
    + """
writer.event("phase", phase="running")
for step in range(1, 6):
    writer.report(step, loss=1 / step)
writer.event("end", outcome="finished", reason="")
"""
)
COOPERATES = (
    WRITER
    + """
writer.event("phase", phase="running")
writer.report(1, loss=1.0)
wait_until(lambda: writer.stop_requested() or (run / "go").exists())
outcome = "stopped" if writer.stop_requested() else "finished"
writer.event("end", outcome=outcome, reason="asked at step 1" if outcome == "stopped" else "")
"""
)
IGNORES_STOP = (
    WRITER
    + """
writer.event("phase", phase="running")
writer.report(1, loss=1.0)
wait_until(lambda: False)
"""
)
IGNORES_EVERYTHING = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + IGNORES_STOP
NEVER_RUNS = WRITER + "writer.event('phase', phase='compiling')\nwait_until(lambda: False)\n"


class Kit:
    """Makes runs, supervises them, and ends whatever is left when the test is over."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._supervisors: list[tuple[subprocess.Popen[bytes], Path]] = []

    def make(
        self, script: str, *, environment: tuple[Variable, ...] = (), program: str = sys.executable
    ) -> Path:
        """A run whose trainer is this Python script, called with the run directory."""
        file = self.folder / f"trainer-{len(list(self.folder.glob('trainer-*')))}.py"
        file.write_text(script)
        plan = Plan(
            command=(program, str(file), "{run}"),
            command_line=("needle", "finetune", "a-test"),
            interpreter=program,
            environment=environment,
            backend=_NOTHING,
            kernel=_NOTHING,
            placement=_NOTHING,
            precision=_NOTHING,
            base=_NOTHING,
            total_steps=5,
        )
        return create_run("finetune", FinetuneSettings(), plan, self.folder / "runs")

    def supervise(self, directory: Path, **environment: str) -> subprocess.Popen[bytes]:
        """Start a real supervisor, as the launcher does."""
        with open(directory / "supervisor.txt", "ab") as words:
            process = subprocess.Popen(
                [sys.executable, "-m", "needle.runs.supervisor", str(directory)],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(_ROOT), **environment},
            )
        self._supervisors.append((process, directory))
        return process

    def state(self, directory: Path) -> RunState:
        """The recorded state; a state of before the start where there is none yet."""
        return read_state(directory) or RunState(phase="queued", host="", boot_id="")

    def clean(self) -> None:
        """End what the test left running, each by its own id."""
        for process, directory in self._supervisors:
            pid = self.state(directory).pid
            if process.poll() is None:
                process.kill()
            process.wait()
            if pid:
                with contextlib.suppress(OSError):
                    os.killpg(pid, signal.SIGKILL)
