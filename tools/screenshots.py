"""Take the README's pictures: the real app, on real short runs of the embedded sample.

    python -m tools.screenshots [FOLDER]        needs the extra `dev`; a few minutes on two cores

Writes `screenshots/*.svg` and `*.png`. The runs live in a temporary folder and are gone afterwards.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic

from textual.pilot import Pilot

from needle_tui.app import NeedleApp
from needle_tui.context import Context
from needle_tui.screens.monitor import MonitorScreen
from needle_tui.widgets.launch_board import LaunchBoard
from tools.pictures import png_of, portable_svg

WIDE, SMALL = (120, 36), (80, 24)
WAIT_S = 900.0


def main(arguments: list[str]) -> int:
    """Take every picture. Returns the exit status."""
    output = Path(arguments[0] if arguments else "screenshots")
    output.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="needle-screenshots-") as folder:
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            os.environ[name] = f"{folder}/{name.lower()}"
        os.environ["NEEDLE_GLYPHS"] = "braille"
        for name in [name for name in os.environ if name.startswith(("PYTHON", "JAX_", "XLA_"))]:
            del os.environ[name]  # the pictures show what a person without settings of their own would see
        asyncio.run(_take_all(Path(folder) / "runs", output))
    return 0


async def _take_all(runs: Path, output: Path) -> None:
    await _session(runs, output, WIDE, _launch_and_watch)
    await _session(runs, output, WIDE, _stop_and_look_back)
    await _session(runs, output, SMALL, _on_a_small_terminal)


async def _session(
    runs: Path, output: Path, size: tuple[int, int], act: Callable[[Stage], Awaitable[None]]
) -> None:
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    app = NeedleApp(Context(runs, host="workstation", environment=environment))
    async with app.run_test(size=size) as pilot:
        await act(Stage(app, pilot, output))


class Stage:
    """The app with somebody at its keyboard and a camera before it."""

    def __init__(self, app: NeedleApp, pilot: Pilot[int], output: Path) -> None:
        self.app = app
        self.press = pilot.press
        self._pilot = pilot
        self._output = output

    async def until(self, condition: Callable[[], object]) -> None:
        """Let the app go on until the condition holds."""
        deadline = monotonic() + WAIT_S
        while not condition():
            if monotonic() > deadline:
                raise TimeoutError("the app did not come to the expected state")
            await self._pilot.pause(0.1)
        await self._pilot.pause(0.5)

    def take(self, name: str) -> None:
        """Write one picture as SVG and PNG."""
        svg = portable_svg(self.app.export_screenshot(title="needle-tui"))
        (self._output / f"{name}.svg").write_text(svg, encoding="utf-8")
        (self._output / f"{name}.png").write_bytes(png_of(svg))
        print(self._output / f"{name}.png", file=sys.stderr)

    @property
    def board(self) -> LaunchBoard | None:
        """Launch's form, once it is there."""
        return next(iter(self.app.screen.query(LaunchBoard)), None)

    @property
    def step(self) -> int:
        """The step of the run on Monitor."""
        screen = self.app.screen
        return screen.moment.step if isinstance(screen, MonitorScreen) and screen.moment else 0

    def ended(self) -> bool:
        """Whether the run on Monitor has ended."""
        screen = self.app.screen
        moment = screen.moment if isinstance(screen, MonitorScreen) else None
        return moment is not None and not moment.is_live


async def _start(stage: Stage, **changed: str) -> None:
    """Start the sample with some settings changed, and move to Monitor."""
    await stage.until(lambda: stage.board and stage.board.outcome.can_start and not stage.app.probing)
    assert stage.board is not None
    for name, value in changed.items():
        stage.board.form.field_widget(name).set_value(value)
    await stage.until(lambda: stage.board and stage.board.outcome.can_start)
    await stage.press("ctrl+s")
    await stage.until(lambda: stage.step > 0)


async def _launch_and_watch(stage: Stage) -> None:
    await stage.until(lambda: stage.board and stage.board.outcome.can_start and not stage.app.probing)
    stage.take("launch")
    await _start(stage, name="tools-rank-16", epochs="4")
    await stage.until(lambda: stage.step >= 60)
    stage.take("monitor")
    await stage.until(stage.ended)
    await stage.press("plus")
    stage.take("finished")


async def _stop_and_look_back(stage: Stage) -> None:
    await _start(stage, name="tools-rank-64", lora_rank="64", epochs="4")
    await stage.until(lambda: stage.step >= 8)
    await stage.press("s", "y")
    await stage.until(lambda: stage.app.live_runs == 0)
    stage.take("stop")
    await stage.press("enter", "1")
    await _start(stage, name="tools-small-batch", batch_size="8", epochs="4")
    await stage.until(lambda: stage.step >= 12)
    await stage.press("3")
    await stage.until(lambda: len(stage.app.rows or ()) == 3)
    stage.take("runs")
    await stage.press("4")
    await stage.until(lambda: not stage.app.probing)
    stage.take("devices")


async def _on_a_small_terminal(stage: Stage) -> None:
    await stage.until(lambda: stage.board and stage.board.outcome.can_start and not stage.app.probing)
    stage.take("launch-80x24")
    await stage.press("2")
    await stage.until(lambda: stage.step >= 40)
    stage.take("monitor-80x24")
    await stage.press("s", "y")
    await stage.until(lambda: stage.app.live_runs == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
