"""Runs: every run found, newest first, live rows moving in place."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label

from needle.errors import NeedleError
from needle.runs.record import RunFiles, read_request
from needle.units import bytes_text
from needle_tui.background import in_background
from needle_tui.fleet import RunRow
from needle_tui.messages import ActionDone, ActionFailed
from needle_tui.phases import look_of
from needle_tui.run_filter import filtered
from needle_tui.screens.base import NeedleScreen
from needle_tui.screens.confirm import ConfirmDialog
from needle_tui.screens.stop import StopDialog
from needle_tui.theme import style_sheet
from needle_tui.widgets.empty_note import EmptyNote
from needle_tui.widgets.form_field import ValueInput
from needle_tui.widgets.help_line import HelpLine
from needle_tui.widgets.key_bar import KeyBar
from needle_tui.widgets.run_table import RunTable, RunTableHead
from needle_tui.widgets.top_bar import TopBar

NO_RUNS = (
    "No runs yet.",
    "1 opens Launch; there ^s starts one on the embedded sample.",
    "From a shell: needle finetune --sample --detach",
)
NO_MATCH = ("No run matches the filter.", "Esc shows all. Words, or state=failed, loss<0.5, device=cuda.")


class RunsScreen(NeedleScreen):
    """The fleet, its filter, and what can be done to one run."""

    CSS_PATH = style_sheet("runs")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter"),
        Binding("s", "stop", "Stop"),
        Binding("e", "edit", "Edit and run again"),
        Binding("x", "remove", "Remove"),
        Binding("escape", "clear_filter", "Show all", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Filter, head and table."""
        yield TopBar("runs")
        with Horizontal(id="filter"):
            yield Label("/")
            yield ValueInput("")
        yield RunTableHead()
        yield RunTable()
        yield EmptyNote("Looking for runs…")
        yield HelpLine()
        yield KeyBar()

    def on_mount(self) -> None:
        """Follow the app's runs."""
        self.table.focus()
        self.watch(self.cockpit, "rows", self.show_rows, init=False)

    def on_screen_resume(self) -> None:
        """Have the rows brought up to date at once."""
        self.cockpit.look_at_runs()

    @property
    def table(self) -> RunTable:
        """The table."""
        return self.query_one(RunTable)

    @property
    def filter_text(self) -> str:
        """The filter as typed."""
        return self.query_one(ValueInput).value

    def show_rows(self) -> None:
        """The rows that the filter leaves."""
        rows = self.cockpit.rows
        if rows is None:
            return
        shown = filtered(rows, self.filter_text)
        self.table.show(shown, self.cockpit.context.now())
        note = self.query_one(EmptyNote)
        note.show(*(NO_MATCH if rows else NO_RUNS))
        self.set_class(not shown, "-empty")
        self._describe()

    def _describe(self) -> None:
        """Under the table: why the run under the cursor ended, or how many there are."""
        rows, row = self.cockpit.rows or (), self.table.current
        if row is not None and row.reason:
            self.query_one(HelpLine).show(f"{row.name}: {row.reason}", role=f"${look_of(row.phase).role}")
            return
        live = sum(one.is_live for one in rows)
        self.query_one(HelpLine).show(f"{len(rows)} runs, {live} alive" if rows else "", role="$muted")

    def on_run_table_moved(self) -> None:
        """Say what there is to say of the run under the cursor."""
        self._describe()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as it is typed."""
        self.set_class(bool(event.value), "-filtered")
        self.show_rows()

    def on_input_submitted(self) -> None:
        """Back to the table; the filter stays, and stays visible."""
        self.table.focus()

    def on_run_table_chosen(self, event: RunTable.Chosen) -> None:
        """Open the run in Monitor."""
        self.run_worker(self.cockpit.open_run(event.row.directory))

    def action_filter(self) -> None:
        """Type a filter."""
        self.add_class("-filtered")
        self.query_one(ValueInput).focus()

    def action_clear_filter(self) -> None:
        """Show every run again."""
        self.query_one(ValueInput).value = ""
        self.remove_class("-filtered")
        self.table.focus()

    def action_stop(self) -> None:
        """Ask whether to stop the run under the cursor."""
        row = self.table.current
        if row is None or self.cockpit.refuse_when_read_only():
            return
        if not row.is_live:
            self.query_one(HelpLine).show(f"{row.name} has already ended: {row.phase}", role="$warning")
            return
        self.app.push_screen(StopDialog(row.directory, row.name))

    def action_edit(self) -> None:
        """Put the run's settings into Launch's form."""
        row = self.table.current
        if row is None:
            return
        try:
            request = read_request(row.directory)
        except NeedleError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self.run_worker(self.cockpit.edit_settings(request.task, dict(request.settings)))

    def action_remove(self) -> None:
        """Ask whether to delete the run under the cursor; one that lives is refused."""
        row = self.table.current
        if row is None or self.cockpit.refuse_when_read_only():
            return
        if row.is_live:
            self.query_one(HelpLine).show(f"{row.name} is {row.phase}: stop it first with s", role="$warning")
            return
        dialog = ConfirmDialog(f"Delete {row.name}?", removal_text(row.directory), yes="Delete it for good")
        self.app.push_screen(dialog, lambda sure: self._remove(row) if sure else None)

    def _remove(self, row: RunRow) -> None:
        def remove() -> Message:
            from needle.runs.index import remove_run

            try:
                remove_run(row.directory)
            except (NeedleError, OSError) as error:
                return ActionFailed(str(error))
            return ActionDone(f"Deleted {row.directory}")

        in_background(self, remove, name="remove a run")

    def on_action_done(self, message: ActionDone) -> None:
        """Say so and look again."""
        self.notify(message.text)
        self.cockpit.look_at_runs()

    def on_action_failed(self, message: ActionFailed) -> None:
        """Say why not."""
        self.notify(message.text, severity="error", title="Not deleted")


def removal_text(directory: Path) -> str:
    """Exactly what deleting a run would take away."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    size = bytes_text(sum(path.stat().st_size for path in files))
    kept = RunFiles(directory)
    results = [path.name for path in files if kept.artifacts in path.parents]
    saved = f"its results ({', '.join(sorted(results)[:4])}), " if results else ""
    return (
        f"{directory}\n\n{len(files)} files, {size}: {saved}its checkpoints, metrics and log. "
        "This cannot be undone."
    )
