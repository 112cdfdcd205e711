"""The cockpit: screens, commands and what they share. It never imports JAX."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.screen import Screen

from needle_tui.background import in_background
from needle_tui.context import Context
from needle_tui.messages import BackendKnown, InventoryKnown
from needle_tui.screens.base import NeedleScreen
from needle_tui.theme import FALLBACK_VARIABLES, THEMES, theme_for

if TYPE_CHECKING:
    from needle.config import Value
    from needle.devices.inventory import Backend, Inventory
    from needle_tui.fleet import Fleet, RunRow
    from needle_tui.screens.launch import LaunchScreen
    from needle_tui.screens.monitor import MonitorScreen

NEEDS_INVENTORY = ("launch", "devices")
"""Screens that need to know the machine; a watcher of one run starts no probes."""
ROWS_POLL_S = 1.0
COUNT_POLL_S = 3.0


class NeedleApp(App[int]):
    """Launch, watch and return to runs."""

    TITLE = "needle"
    CSS_PATH = "styles/app.tcss"
    # `-narrow` is one column; `-short` leaves out what can be left out. 80x24 is `-medium -short`.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-medium"), (110, "-wide")]  # noqa: RUF012 declared so by Textual
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "open_screen('launch')", "Launch", show=False),
        Binding("2", "open_screen('monitor')", "Monitor", show=False),
        Binding("3", "open_screen('runs')", "Runs", show=False),
        Binding("4", "open_screen('devices')", "Devices", show=False),
        Binding("f1,question_mark", "help", "Keys", show=False),
        Binding("q", "quit", "Quit", show=False),
    ]

    inventory: reactive[Inventory | None] = reactive(None)
    probing: reactive[bool] = reactive(False)
    live_runs: reactive[int] = reactive(0)
    rows: reactive[tuple[RunRow, ...] | None] = reactive(None)

    def __init__(self, context: Context, *, start: str = "launch", run: Path | None = None) -> None:
        # `watch` opens Monitor without drawing Launch first.
        self.DEFAULT_MODE = start  # type: ignore[misc]
        super().__init__()
        self.context = context
        self.host_name = context.host or socket.gethostname()
        self.open_directory = run
        self._look_now = asyncio.Event()
        self._began = False
        for name in ("launch", "monitor", "runs", "devices"):
            self.add_mode(name, self._maker(name))
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = theme_for(context.environment).name

    def begin_background_work(self) -> None:
        """What each screen calls once it is painted: look at runs, and at the machine where it matters."""
        if self._began:
            return
        self._began = True
        self._watch_runs()
        if self.current_mode in NEEDS_INVENTORY:
            self.learn_inventory()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own colours, for themes that do not know them."""
        return FALLBACK_VARIABLES

    def _maker(self, name: str) -> Callable[[], Screen[None]]:
        """A screen is imported and made when it is first opened: the first paint waits for one only."""

        def make() -> Screen[None]:
            if name == "launch":
                from needle_tui.screens.launch import LaunchScreen

                return LaunchScreen(_sample_values())
            if name == "monitor":
                from needle_tui.screens.monitor import MonitorScreen

                return MonitorScreen(self.open_directory)
            if name == "runs":
                from needle_tui.screens.runs import RunsScreen

                return RunsScreen()
            from needle_tui.screens.devices import DevicesScreen

            return DevicesScreen()

        return make

    async def action_open_screen(self, name: str) -> None:
        """Switch to one of the screens."""
        await self.switch_mode(name)
        if name in NEEDS_INVENTORY and self.inventory is None:
            self.learn_inventory()

    async def open_run(self, directory: Path) -> None:
        """Show one run in Monitor."""
        self.open_directory = directory
        await self.switch_mode("monitor")
        cast("MonitorScreen", self.screen).open_run(directory)

    async def edit_settings(self, task: str, values: dict[str, Value]) -> None:
        """Put a run's settings into Launch's form."""
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

        in_background(self, learn, name="inventory")

    def on_inventory_known(self, message: InventoryKnown) -> None:
        """Take what was found."""
        self.inventory = message.inventory
        self.probing = message.probing

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
        """Rows while Runs is open, else only how many runs are alive."""
        fleet = await asyncio.to_thread(_make_fleet, self.context)
        while True:
            rows_wanted = self.current_mode == "runs"
            if rows_wanted:
                self.rows = await asyncio.to_thread(fleet.poll)
                self.live_runs = sum(row.is_live for row in self.rows)
            else:
                self.live_runs = await asyncio.to_thread(fleet.count_live)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look_now.wait(), ROWS_POLL_S if rows_wanted else COUNT_POLL_S)
            self._look_now.clear()

    def watch_live_runs(self) -> None:
        """The top bar says how many runs are alive."""
        if isinstance(self.screen, NeedleScreen):
            self.screen.refresh_top_bar()

    async def action_quit(self) -> None:
        """Leave; runs go on, and it is said so when one is alive."""
        self.exit(0, message=_parting_words(self.live_runs))

    def refuse_when_read_only(self) -> bool:
        """Whether nothing may be changed; says so."""
        if self.context.read_only:
            self.notify("This cockpit was opened with --read-only.", severity="warning", markup=False)
        return self.context.read_only

    async def action_help(self) -> None:
        """Show the keys that work here and now."""
        from needle_tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            await self.push_screen(HelpScreen(self.screen.active_bindings))

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


def _sample_values() -> dict[str, Value]:
    """The form opens on what comes with the package, ready to start."""
    from needle.config import to_json
    from needle.launch.plan import sample_settings

    return to_json(sample_settings())
