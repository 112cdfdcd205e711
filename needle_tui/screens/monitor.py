"""Monitor: one run as it happens, or as it happened."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message

from needle.errors import InputError, NeedleError
from needle.runs.control import request_checkpoint
from needle.runs.index import find_runs
from needle_tui.background import in_background
from needle_tui.facts import facts_of
from needle_tui.feed import RunFeed, Turn
from needle_tui.messages import ActionDone, ActionFailed
from needle_tui.moment import Moment
from needle_tui.screens.base import NeedleScreen
from needle_tui.screens.reasons import ReasonsScreen
from needle_tui.screens.stop import StopDialog
from needle_tui.theme import style_sheet
from needle_tui.widgets.decision_list import DecisionList
from needle_tui.widgets.device_use import DeviceUse
from needle_tui.widgets.empty_note import EmptyNote
from needle_tui.widgets.key_bar import KeyBar
from needle_tui.widgets.log_view import LogView
from needle_tui.widgets.numbers_panel import NumbersPanel
from needle_tui.widgets.run_chart import X_AXES, RunChart
from needle_tui.widgets.run_header import RunHeader
from needle_tui.widgets.top_bar import TopBar

POLL_S = 0.5
ENDED_POLL_S = 1.0
LOSSES = ("loss", "val_loss")
METRIC_TITLES = {"step_ms": "Step time, ms", "lr": "Learning rate", "grad_norm": "Gradient norm"}
SMOOTHINGS = (0.0, 0.6, 0.9, 0.97, 0.99)
NO_RUN = (
    "No run is open.",
    "1 starts one, 3 lists the runs there are.",
    "From a shell: needle-tui watch latest",
)


class MonitorScreen(NeedleScreen):
    """Header, charts, numbers, devices, facts and log of one run."""

    CSS_PATH = style_sheet("monitor")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "stop", "Stop"),
        Binding("c", "checkpoint", "Checkpoint now"),
        Binding("r", "resume", "Resume"),
        Binding("m", "next_metric", "More metrics"),
        Binding("x", "next_axis", "Axis"),
        Binding("plus,equals_sign", "smooth(1)", "Smoother", key_display="+"),
        Binding("minus", "smooth(-1)", "Rougher", key_display="-", show=False),
        Binding("l", "log_axis", "Log axis"),
        Binding("f3", "reasons", "Reasons", show=False),
        Binding("e", "edit", "Edit and run again", show=False),
        Binding("y", "copy_command", "Copy command", show=False),
        Binding("o", "copy_path", "Copy path", show=False),
        Binding("g", "newest", "Newest run", show=False),
    ]

    def __init__(self, directory: Path | None) -> None:
        super().__init__()
        self.directory = directory
        self.moment: Moment | None = None
        self._metric = "step_ms"
        self._x_axis = "step"

    def compose(self) -> ComposeResult:
        """Charts at the left, numbers at the right, the log below."""
        yield TopBar("monitor")
        yield RunHeader()
        with Horizontal(id="body"):
            with Vertical(id="charts"):
                yield RunChart("Loss", id="loss", empty_text="no step yet")
                yield RunChart("Step time, ms", id="metric", empty_text="no step yet")
                with LogView(id="log", classes="panel") as log:
                    log.border_title = "Log"
            with VerticalScroll(id="side"):
                yield NumbersPanel()
                yield DeviceUse()
                yield DecisionList("Facts", id="facts")
        yield EmptyNote(*NO_RUN)
        yield KeyBar()

    def on_mount(self) -> None:
        """Open what was asked for, else the newest run."""
        self.loss_chart.focus()
        if self.directory is not None:
            self.open_run(self.directory)
        else:
            self.action_newest()

    @property
    def loss_chart(self) -> RunChart:
        """The upper chart."""
        return self.query_one("#loss", RunChart)

    @property
    def metric_chart(self) -> RunChart:
        """The lower chart, whose metric a key changes."""
        return self.query_one("#metric", RunChart)

    def open_run(self, directory: Path) -> None:
        """Show another run, or the same one from its beginning."""
        self.directory = directory
        self.moment = None
        for chart in (self.loss_chart, self.metric_chart):
            chart.clear()
            chart.reset()
        self.query_one(LogView).clear()
        self.remove_class("-empty")
        self._follow(directory)

    @work(group="follow", exclusive=True)
    async def _follow(self, directory: Path) -> None:
        """Read the run off the event loop, and show it whenever something changed."""
        try:
            feed = await asyncio.to_thread(RunFeed, directory, self.cockpit.context.now)
        except InputError as error:
            self._say_empty("This run cannot be shown.", str(error))
            return
        while True:
            turn = await asyncio.to_thread(feed.take, self._metric) if self.is_current else Turn()
            if turn.moment is not None:
                self._show(turn.moment)
            if turn.log is not None:
                self.query_one(LogView).show(turn.log)
            if not turn.more:
                is_live = self.moment is None or self.moment.is_live
                await asyncio.sleep(POLL_S if is_live else ENDED_POLL_S)

    def _show(self, moment: Moment) -> None:
        ended = self.moment is not None and self.moment.is_live and not moment.is_live
        self.moment = moment
        if ended:
            self.cockpit.look_at_runs()
        self.query_one(RunHeader).show(moment)
        self.query_one(NumbersPanel).show(moment)
        self.query_one(DeviceUse).show(moment)
        facts = self.query_one("#facts", DecisionList)
        facts.show(facts_of(moment.request, moment.events), dense=self.is_dense)
        self._show_charts(moment)
        self.refresh_bindings()

    def _show_charts(self, moment: Moment) -> None:
        end = float(moment.total) if self._x_axis == "step" and moment.total and moment.is_live else None
        marks = [(float(step), "resumed") for step in moment.attempt_starts] if self._x_axis == "step" else []
        # A moment may have been taken for the metric that was shown before.
        metrics = (self._metric,) if self._metric in moment.series else ()
        for chart, names in ((self.loss_chart, LOSSES), (self.metric_chart, metrics)):
            chart.set_x_axis(self._x_axis, X_AXES[self._x_axis], end)
            for name in names:
                chart.show_series(moment.series[name], self._x_axis)
            chart.set_marks(marks)

    def _say_empty(self, *sentences: str) -> None:
        self.query_one(EmptyNote).show(*sentences)
        self.add_class("-empty")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what makes sense for the run as it is."""
        moment = self.moment
        if action in ("stop", "checkpoint"):
            return moment is not None and moment.is_live
        if action == "resume":
            return moment is not None and not moment.is_live and moment.status.phase != "finished"
        return True

    @work(group="newest", exclusive=True)
    async def action_newest(self) -> None:
        """Open the newest run there is."""
        runs = await asyncio.to_thread(find_runs, self.cockpit.context.runs_directory)
        if runs:
            self.open_run(runs[0])
        else:
            self._say_empty(*NO_RUN)

    def action_stop(self) -> None:
        """Ask whether to stop."""
        if self.moment is not None and self.directory and not self.cockpit.refuse_when_read_only():
            request = self.moment.request
            self.app.push_screen(StopDialog(self.directory, request.name or request.id))

    def action_checkpoint(self) -> None:
        """Have the trainer save at its next step."""
        if self.directory is None or self.cockpit.refuse_when_read_only():
            return
        try:
            request_checkpoint(self.directory)
            self.notify("Asked: it saves a checkpoint at its next step and goes on.")
        except NeedleError as error:
            self.notify(str(error), severity="error")

    def action_resume(self) -> None:
        """Start another attempt where the last one ended."""
        directory = self.directory
        if directory is not None and not self.cockpit.refuse_when_read_only():
            in_background(self, lambda: resume(directory), name="resume a run")

    def on_action_done(self, message: ActionDone) -> None:
        """Say so."""
        self.notify(message.text)
        self.cockpit.look_at_runs()

    def on_action_failed(self, message: ActionFailed) -> None:
        """Say why not."""
        self.notify(message.text, severity="error", title="Not done")

    def action_next_metric(self) -> None:
        """Show the next metric in the lower chart."""
        names = [name for name in (self.moment.names if self.moment else ()) if name not in LOSSES]
        if names:
            at = names.index(self._metric) if self._metric in names else -1
            self._metric = names[(at + 1) % len(names)]
            self.metric_chart.clear()
            self.metric_chart.title = METRIC_TITLES.get(self._metric, self._metric)

    def action_next_axis(self) -> None:
        """Steps, time, tokens along the bottom."""
        axes = list(X_AXES)
        self._x_axis = axes[(axes.index(self._x_axis) + 1) % len(axes)]
        if self.moment is not None:
            self._show_charts(self.moment)

    def action_smooth(self, by: int) -> None:
        """More or less smoothing in both charts."""
        at = SMOOTHINGS.index(self.loss_chart.smoothing) if self.loss_chart.smoothing in SMOOTHINGS else 0
        smoothing = SMOOTHINGS[max(0, min(at + by, len(SMOOTHINGS) - 1))]
        self.loss_chart.smoothing = self.metric_chart.smoothing = smoothing

    def action_log_axis(self) -> None:
        """Logarithmic or linear values in the loss chart."""
        self.loss_chart.log_scale = not self.loss_chart.log_scale

    def action_reasons(self) -> None:
        """Show the plan of the run with every reason in full."""
        if self.moment is not None:
            facts = facts_of(self.moment.request, self.moment.events)
            self.app.push_screen(ReasonsScreen(facts, self.moment.request.plan))

    def action_edit(self) -> None:
        """Put the run's settings into Launch's form."""
        if self.moment is not None:
            request = self.moment.request
            self.run_worker(self.cockpit.edit_settings(request.task, dict(request.settings)))

    def action_copy_command(self) -> None:
        """Put the command line of the run on the clipboard."""
        if self.moment is not None:
            self._copy(shlex.join(self.moment.request.plan.command_line))

    def action_copy_path(self) -> None:
        """Put the path of the run's directory on the clipboard."""
        if self.directory is not None:
            self._copy(str(self.directory))

    def _copy(self, text: str) -> None:
        """Not every terminal allows it, so the text is shown too."""
        self.app.copy_to_clipboard(text)
        self.notify(text, title="Copied, where the terminal allows it")


def resume(directory: Path) -> Message:
    """Resume a run, off the event loop."""
    from needle.launch.start import resume_run

    try:
        resume_run(directory)
    except (NeedleError, OSError) as error:
        return ActionFailed(str(error))
    return ActionDone("Resumed: a new attempt goes on from the last checkpoint.")
