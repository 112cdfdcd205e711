"""The cockpit: screens, commands and what they share. It never imports JAX."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import socket
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from rich.console import RenderableType
from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.reactive import reactive
from textual.screen import Screen

from needle_tui.background import BackgroundFailed, in_background
from needle_tui.context import Context
from needle_tui.messages import BackendKnown, InventoryKnown
from needle_tui.narrow_update import narrowed
from needle_tui.screens.base import NeedleScreen
from needle_tui.screens.catalogue import NAMES, make_screen
from needle_tui.text import inert
from needle_tui.theme import FALLBACK_VARIABLES, THEMES, style_sheet, theme_for

if TYPE_CHECKING:
    from needle.config import Value
    from needle.devices.inventory import Backend, Inventory
    from needle_tui.fleet import Fleet, RunRow
    from needle_tui.screens.launch import LaunchScreen
    from needle_tui.screens.monitor import MonitorScreen

NEEDS_INVENTORY = ("launch", "devices")
"""Screens that need to know the machine; a watcher of one run starts no probes."""
PAINT_REST_S = 0.01
ROWS_POLL_S = 1.0
COUNT_POLL_S = 3.0


class NeedleApp(App[int]):
    """Launch, watch and return to runs."""

    TITLE = "needle"
    # `-narrow` is one column; `-short` leaves out what can be left out. 80x24 is `-medium -short`.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-medium"), (110, "-wide")]  # noqa: RUF012 declared so by Textual
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "open_screen('launch')", "Launch", show=False),
        Binding("2", "open_screen('monitor')", "Monitor", show=False),
        Binding("3", "open_screen('runs')", "Runs", show=False),
        Binding("4", "open_screen('devices')", "Devices", show=False),
        Binding("f1,question_mark", "help", "Keys", show=False),
        Binding("ctrl+g,f2", "jump", "Jump to a part of the screen", show=False, priority=True),
        Binding("q", "quit", "Quit", show=False),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False),
    ]

    inventory: reactive[Inventory | None] = reactive(None)
    probing: reactive[bool] = reactive(False)
    live_runs: reactive[int] = reactive(0)
    rows: reactive[tuple[RunRow, ...] | None] = reactive(None)

    def __init__(self, context: Context, *, start: str = "launch", run: Path | None = None) -> None:
        # The first screen's style sheet is read with the app's: loading it by itself would parse all twice.
        super().__init__(css_path=[style_sheet("app"), style_sheet(start)])
        self.context = context
        self.host_name = context.host or socket.gethostname()
        self.open_directory = run
        self._first_name = start
        self._look_now = asyncio.Event()
        self._painted = False
        for name in NAMES:
            self.add_mode(name, partial(make_screen, name, self))
        for theme in THEMES.values():
            self.register_theme(theme)
        # Set without its watcher, which would have every style parsed again before the first paint.
        self.set_reactive(NeedleApp.theme, theme_for(context.environment, context.theme).name)
        self.stylesheet.set_variables(self.get_css_variables())

    def post_display_hook(self) -> None:
        """The first paint is out: everything that it must not wait for may begin."""
        if not self._painted:
            self._painted = True
            gc.enable()
            # The thread that writes to the terminal is let go first.
            self.set_timer(PAINT_REST_S, self._after_first_paint)

    async def _after_first_paint(self) -> None:
        # Textual makes its default mode without being told, but only goes back to one that it was told of.
        self._modes[self.DEFAULT_MODE] = self.get_default_screen
        if isinstance(self.screen, NeedleScreen):
            await self.screen.furnish()
        self._watch_runs()
        if self.open_name in NEEDS_INVENTORY:
            self.learn_inventory()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own colours, for themes that do not know them."""
        return FALLBACK_VARIABLES

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        super()._display(screen, narrowed(renderable))

    def get_default_screen(self) -> Screen[None]:
        """The first screen. As the app's default one it is painted without parsing every style again."""
        return make_screen(self._first_name, self)

    @property
    def open_name(self) -> str:
        """Which of the four screens is open."""
        return self._first_name if self.current_mode == self.DEFAULT_MODE else self.current_mode

    async def action_open_screen(self, name: str) -> None:
        """Switch to one of the screens."""
        await self.switch_mode(self.DEFAULT_MODE if name == self._first_name else name)
        if isinstance(self.screen, NeedleScreen):
            await self.screen.furnish()
        if name in NEEDS_INVENTORY and self.inventory is None:
            self.learn_inventory()

    async def open_run(self, directory: Path) -> None:
        """Show one run in Monitor."""
        self.open_directory = directory
        await self.action_open_screen("monitor")
        cast("MonitorScreen", self.screen).open_run(directory)

    async def edit_settings(self, task: str, values: dict[str, Value]) -> None:
        """Put a run's settings into Launch's form, where this version knows its task and settings."""
        from needle.config import from_json
        from needle.errors import InputError

        try:
            from_json(task, values)
        except InputError as error:
            self.notify(
                str(error), title="These settings cannot be edited here", severity="warning", markup=False
            )
            return
        await self.action_open_screen("launch")
        await cast("LaunchScreen", self.screen).load_settings(task, values)

    def learn_inventory(self) -> None:
        """What is known at once, then what probes find; in the background."""
        if self.probing:
            return
        self.probing = True

        def tell(backend: Backend) -> None:
            self.post_message(BackendKnown(backend))

        def learn() -> Message:
            known = self.context.known_inventory()
            self.post_message(InventoryKnown(known, probing=True))
            found = self.context.probe(known, tell)
            return InventoryKnown(found, probing=False)

        in_background(self, learn, name="look at this machine")

    def on_inventory_known(self, message: InventoryKnown) -> None:
        """Take what was found."""
        self.inventory = message.inventory
        self.probing = message.probing

    def on_background_failed(self, message: BackgroundFailed) -> None:
        """Say that something went wrong that should not have, and go on with what there is."""
        self.probing = False
        text = f"{type(message.error).__name__}: {message.error}"
        self.notify(text, title=f"Could not {message.name}", severity="error")

    def on_backend_known(self, message: BackendKnown) -> None:
        """Take one backend's answer while others are still asked."""
        if self.inventory is None:
            return
        backends = tuple(
            message.backend if backend.platform == message.backend.platform else backend
            for backend in self.inventory.backends
        )
        self.inventory = dataclasses.replace(self.inventory, backends=backends)

    def is_being_probed(self, platform: str) -> bool:
        """Whether a probe of this platform is still to answer."""
        if not self.probing or self.inventory is None:
            return False
        return any(one.platform == platform and one.status == "untried" for one in self.inventory.backends)

    def action_probe(self) -> None:
        """Look at the machine again."""
        self.learn_inventory()

    def look_at_runs(self) -> None:
        """Look at the runs now rather than at the next turn."""
        self._look_now.set()

    @work(group="runs")
    async def _watch_runs(self) -> None:
        """Rows while Runs is open, else only which runs are alive."""
        fleet = await asyncio.to_thread(_make_fleet, self.context)
        live: dict[Path, str] = {}
        while True:
            before, rows_wanted = live, self.open_name == "runs"
            if rows_wanted:
                self.rows = await asyncio.to_thread(fleet.poll)
                live = {row.directory: row.name for row in self.rows if row.is_live}
            else:
                live = await asyncio.to_thread(fleet.live)
            self.live_runs = len(live)
            await self._tell_ends({path: name for path, name in before.items() if path not in live})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look_now.wait(), ROWS_POLL_S if rows_wanted else COUNT_POLL_S)
            self._look_now.clear()

    async def _tell_ends(self, ended: dict[Path, str]) -> None:
        """Say which runs ended, unless their row or their own screen says it already."""
        from needle.runs.state import observe_directory

        for path, name in ended.items():
            is_seen = self.open_name == "runs" or (
                self.open_name == "monitor" and self.open_directory == path
            )
            if not is_seen and path.exists():
                status = await asyncio.to_thread(observe_directory, path)
                went_well = status.phase in ("finished", "stopped")
                self.notify(
                    status.reason or status.phase,
                    title=f"{name}: {status.phase}",
                    severity="information" if went_well else "error",
                )

    def watch_live_runs(self) -> None:
        """The top bar says how many runs are alive."""
        if isinstance(self.screen, NeedleScreen):
            self.screen.refresh_top_bar()

    async def action_quit(self) -> None:
        """Leave; runs go on, and it is said so when one is alive."""
        self.exit(0, message=_parting_words(self.live_runs))

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """As every app's, but what is said is inert: names, paths and errors come from outside."""
        lines = "\n".join(map(inert, message.split("\n")))
        super().notify(lines, title=inert(title), severity=severity, timeout=timeout, markup=False)

    def refuse_when_read_only(self) -> bool:
        """Whether nothing may be changed; says so."""
        if self.context.read_only:
            self.notify("This cockpit was opened with --read-only.", severity="warning")
        return self.context.read_only

    async def action_help(self) -> None:
        """Show the keys that work here and now."""
        from needle_tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            await self.push_screen(HelpScreen(self.screen.active_bindings))

    async def action_jump(self) -> None:
        """Put a letter on every part of the screen that takes keys; the one pressed gets the focus."""
        from textual.widget import Widget

        from needle_tui.screens.jump import JumpScreen, targets_on

        screen = self.screen
        targets = targets_on(screen)

        def go(chosen: Widget | None) -> None:
            if chosen is not None:
                screen.set_focus(chosen)

        if targets and isinstance(screen, NeedleScreen):
            await self.push_screen(JumpScreen(targets), go)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Our commands for the palette; the current screen's own keys come first."""
        from needle_tui.commands import commands_for

        yield from commands_for(self, screen)


def _make_fleet(context: Context) -> Fleet:
    """Imported in a worker thread: it brings numpy, which the first paint must not wait for."""
    from needle_tui.fleet import Fleet

    return Fleet(context.runs_directory, context.now)


def _parting_words(live_runs: int) -> str | None:
    if not live_runs:
        return None
    goes = "1 run goes on" if live_runs == 1 else f"{live_runs} runs go on"
    return f"{goes}. Come back with: needle-tui watch"
