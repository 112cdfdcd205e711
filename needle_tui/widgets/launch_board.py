"""Launch's form and panes, and everything that follows from an edit."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.timer import Timer

from needle.config import FinetuneSettings, Value
from needle.errors import NeedleError
from needle.runs.record import Decision, Plan
from needle_tui.background import in_background
from needle_tui.draft import FILE_FIELDS, Outcome, judge
from needle_tui.form_layout import as_text
from needle_tui.messages import ActionFailed, FactsFound, RunStarted
from needle_tui.widgets.decision_list import DecisionList
from needle_tui.widgets.device_list import DeviceList
from needle_tui.widgets.environment_list import CommandLine, EnvironmentList
from needle_tui.widgets.form_field import FormField
from needle_tui.widgets.help_line import HelpLine
from needle_tui.widgets.memory_bill import MemoryPanel
from needle_tui.widgets.settings_form import SettingsForm

if TYPE_CHECKING:
    from needle_tui.app import NeedleApp

LOOK_DELAY_S = 0.15


class LaunchBoard(Horizontal):
    """Form and memory at the left; devices, decisions and environment at the right."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        super().__init__(id="columns")
        self._start_values = values
        self._looked_at: dict[str, str] = {}
        self._facts_message: FactsFound | None = None
        self._look_timer: Timer | None = None
        self._wants_start = False
        self._starting = False
        self.outcome = Outcome()

    def compose(self) -> ComposeResult:
        """The two columns."""
        with VerticalScroll(id="left", can_focus=False) as left:
            left.border_title = "Fine-tune"
            yield SettingsForm(FinetuneSettings, self._start_values)
            yield MemoryPanel()
            yield CommandLine()
        with VerticalScroll(id="right"):
            yield DeviceList()
            yield DecisionList("Plan", id="plan")
            yield EnvironmentList()

    def on_mount(self) -> None:
        """Follow what the app learns of the machine, and look at the files."""
        self.watch(self.cockpit, "inventory", self.take_inventory, init=False)
        self.watch(self.cockpit, "probing", self.recompute, init=False)
        self.call_after_refresh(self._look)

    @property
    def cockpit(self) -> NeedleApp:
        """The app, by its own type."""
        return cast("NeedleApp", self.app)

    @property
    def help_line(self) -> HelpLine:
        """The screen's line for words."""
        return self.screen.query_one(HelpLine)

    @property
    def form(self) -> SettingsForm:
        """The form."""
        return self.query_one(SettingsForm)

    def load(self, values: Mapping[str, Value]) -> None:
        """Put other values into the form."""
        self.form.load(values)

    def on_resize(self) -> None:
        """Reasons share a line with what they explain where there is little room."""
        self.recompute()

    def on_form_field_changed(self, event: FormField.Changed) -> None:
        """Recompute at once; look at the files again a moment after the last key."""
        if event.name in FILE_FIELDS:
            if self._look_timer is not None:
                self._look_timer.stop()
            self._look_timer = self.set_timer(LOOK_DELAY_S, self._look)
        self._wants_start = False
        self.recompute()

    def take_inventory(self) -> None:
        """Offer the platforms there are, and judge again."""
        inventory = self.cockpit.inventory
        if inventory is not None:
            present = [one.platform for one in inventory.backends if one.status != "absent"]
            self.form.offer("backend", ("auto", *present))
        self.recompute()

    def recompute(self) -> None:
        """Judge the values as they are and show what they come to."""
        facts = self._facts_message.facts if self._facts_message else None
        app = self.cockpit
        self.outcome = judge(
            self.form.values, facts, app.inventory, app.context.environment, stale=self._stale()
        )
        self._show(self.outcome)
        self._start_if_wanted()

    @property
    def is_looking(self) -> bool:
        """Whether what is known of the files is of other values than these."""
        return self._facts_message is None or bool(self._stale())

    def _stale(self) -> frozenset[str]:
        """Settings whose files were looked at with another value than they have now."""
        if self._facts_message is None:
            return frozenset()
        values, looked_at = self.form.values, self._facts_message.values
        return frozenset(name for name in FILE_FIELDS if values[name] != looked_at[name])

    def _look(self) -> None:
        """Have the files looked at in the background, once for these values."""
        values = self.form.values
        if values == self._looked_at:
            return
        self._looked_at = values

        def look() -> Message:
            from needle.launch.preflight import inspect_finetune

            return FactsFound(values, inspect_finetune(values))

        in_background(self, look, name="look at files")

    def on_facts_found(self, message: FactsFound) -> None:
        """Take what was found, unless newer values are being looked at."""
        if message.values == self._looked_at:
            self._facts_message = message
            self.recompute()

    def _show(self, outcome: Outcome) -> None:
        app, plan, dense = self.cockpit, outcome.plan, self.app.size.height < 30
        self.form.show_problems(outcome.problems, outcome.remarks)
        bill = plan.memory if plan else None
        self.query_one(MemoryPanel).show(bill, dense=dense, remedies=outcome.remedies)
        chosen = plan.backend.choice if plan else ""
        self.query_one(DeviceList).show(app.inventory, chosen_platform=chosen, probing=app.probing)
        decisions = decisions_of(plan) if plan else ()
        self.query_one("#plan", DecisionList).show(decisions, message=outcome.missing, dense=dense)
        self.query_one(EnvironmentList).show(plan.environment if plan else (), dense=dense)
        self.query_one(CommandLine).show(plan.command_line if plan else ())

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Say what the focused setting is."""
        field = next((one for one in event.widget.ancestors_with_self if isinstance(one, FormField)), None)
        if field is not None:
            unit = f" ({field.field.setting.unit})" if field.field.setting.unit else ""
            self.help_line.show(f"{field.field.label}{unit}: {field.field.setting.help}")

    def toggle_advanced(self) -> None:
        """Show or hide the settings that most runs leave alone."""
        self.form.show_advanced(not self.form.has_class("-all"))

    def copy_command(self) -> None:
        """Put the command line on the clipboard."""
        if self.outcome.plan is None:
            self.help_line.show(f"No command yet: {self.outcome.missing}", role="$warning")
            return
        self.app.copy_to_clipboard(shlex.join(self.outcome.plan.command_line))
        self.help_line.show(
            "Copied, where the terminal allows it: " + shlex.join(self.outcome.plan.command_line)
        )

    def browse(self) -> None:
        """Choose a file for the focused setting where it takes one, else for the data."""
        from needle_tui.screens.browse import BrowseScreen

        focused = self.screen.focused
        fields = [one for one in focused.ancestors_with_self if isinstance(one, FormField)] if focused else []
        field = next((one for one in fields if one.field.kind == "path"), self.form.field_widget("data"))

        def take(path: str | None) -> None:
            if path:
                field.set_value(path)

        self.app.push_screen(BrowseScreen(field.field.name, field.field.label, field.value), take)

    def make_it_fit(self) -> None:
        """Apply the first change that would make the run fit."""
        if not self.outcome.remedies:
            self.help_line.show("There is nothing to apply: it fits, or no change offered would make it fit.")
            return
        remedy = self.outcome.remedies[0]
        self.form.field_widget(remedy.field).set_value(as_text(remedy.value))

    def show_reasons(self) -> None:
        """Show the plan with every reason in full."""
        from needle_tui.screens.reasons import ReasonsScreen

        if self.outcome.plan is None:
            self.help_line.show(f"No plan yet: {self.outcome.missing}", role="$warning")
        else:
            plan = self.outcome.plan
            self.app.push_screen(ReasonsScreen((*decisions_of(plan), *where_of(plan)), plan))

    def begin(self) -> None:
        """Start the run, or say what is missing; asked a second time, it waits for no probe."""
        if self.cockpit.refuse_when_read_only():
            return
        is_repeated, self._wants_start = self._wants_start, True
        self._start_if_wanted(force=is_repeated)

    def _start_if_wanted(self, *, force: bool = False) -> None:
        """Start as soon as everything is known; a wish survives until then or until an edit."""
        if not self._wants_start or self._starting:
            return
        problem = self._why_not_yet(force=force)
        if problem:
            self.help_line.show(problem, role="$warning")
            return
        settings, plan = self.outcome.settings, self.outcome.plan
        assert settings is not None
        assert plan is not None
        self._wants_start, self._starting = False, True
        self.help_line.show("Starting…", role="$accent")
        runs_directory = self.cockpit.context.runs_directory
        in_background(self, lambda: start(settings, plan, runs_directory), name="start a run")

    def _why_not_yet(self, *, force: bool) -> str:
        if self.outcome.problems:
            self._wants_start = False
            return f"Cannot start: {self.outcome.missing}"
        if self.outcome.plan is None or self.is_looking:
            return f"Starts in a moment: {self.outcome.missing or 'looking at the files…'}"
        chosen = self.outcome.plan.backend
        if self.cockpit.is_being_probed(chosen.choice) and not force:
            return f"Starts as soon as {chosen.choice} has been probed; ^s again starts at once"
        return ""

    def on_run_started(self, message: RunStarted) -> None:
        """Move to the new run."""
        self._starting = False
        self.help_line.show(f"Started {message.directory.name}", role="$success")
        self.run_worker(self.cockpit.open_run(message.directory))

    def on_action_failed(self, message: ActionFailed) -> None:
        """Say why it did not start."""
        self._starting = False
        self.help_line.show(message.text, role="$error")
        self.notify(message.text, severity="error", title="Not started")


def start(settings: FinetuneSettings, plan: Plan, runs_directory: Path) -> Message:
    """Start a run, off the event loop. Returns RunStarted, or ActionFailed with words for a person."""
    from needle.launch.start import start_run

    try:
        return RunStarted(start_run("finetune", settings, plan, runs_directory))
    except (NeedleError, OSError) as error:
        return ActionFailed(str(error))


def where_of(plan: Plan) -> tuple[tuple[str, Decision], ...]:
    """Why this interpreter and these devices, where the plan says."""
    found = (("Python", plan.python), ("Devices", plan.devices))
    return tuple((name, decision) for name, decision in found if decision is not None)


def decisions_of(plan: Plan) -> tuple[tuple[str, Decision], ...]:
    """The plan's choices by the names people know them by; what depends on unknown files is left out."""
    found = [
        ("Base", plan.base),
        ("Backend", plan.backend),
        ("Attention", plan.kernel),
        ("Precision", plan.precision),
        ("Python", Decision(plan.interpreter, "")),
    ]
    if plan.data is not None:
        found.append(("Data", plan.data))
    if plan.rounding is not None:
        found.insert(4, ("Rounding", plan.rounding))
    if plan.memory is not None:
        found.append(("Data set", plan.placement))
        found.append(("Length", Decision(f"{plan.total_steps:,} steps", "")))
    return tuple(found)
