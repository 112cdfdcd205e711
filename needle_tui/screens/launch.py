"""Launch: on the left what to train, on the right what will happen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from needle.config import FinetuneSettings, Value, from_json
from needle.errors import InputError
from needle_tui.messages import CommandPasted
from needle_tui.screens.base import NeedleScreen
from needle_tui.theme import style_sheet
from needle_tui.widgets.form_picture import FormPicture
from needle_tui.widgets.help_line import HelpLine
from needle_tui.widgets.key_bar import KeyBar
from needle_tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from needle_tui.widgets.launch_board import LaunchBoard

WELCOME = "^s starts this run. Tab goes to the settings; F3 gives every reason in full."


class LaunchScreen(NeedleScreen):
    """Painted first as a picture of its form; the board with the real one follows at once."""

    CSS_PATH = style_sheet("launch")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,f5", "start", "Start", priority=True),
        Binding("ctrl+y", "copy_command", "Copy command", priority=True),
        Binding("ctrl+o", "browse", "Browse", priority=True),
        Binding("ctrl+t", "toggle_advanced", "All settings", priority=True),
        Binding("f3", "reasons", "Reasons"),
        Binding("f6", "app.probe", "Probe devices"),
        Binding("f7", "make_it_fit", "Make it fit", show=False),
        Binding("escape", "leave_field", "Leave the field", show=False),
        Binding("down", "app.focus_next", "Next setting", show=False),
        Binding("up", "app.focus_previous", "Previous setting", show=False),
    ]

    def __init__(self, values: Mapping[str, Value]) -> None:
        super().__init__()
        self._values = values
        self._board: LaunchBoard | None = None
        self._wants_start = False

    def compose(self) -> ComposeResult:
        """What the first paint needs, and no more."""
        yield TopBar("launch")
        yield FormPicture(FinetuneSettings, self._values)
        yield HelpLine(WELCOME)
        yield KeyBar()

    async def furnish(self) -> None:
        """Put the board with the real form where its picture is."""
        if self._board is not None:
            return
        from needle_tui.widgets.launch_board import LaunchBoard

        self._board = LaunchBoard(self._values)
        with self.app.batch_update():
            await self.mount(self._board, after=self.query_one(FormPicture))
            await self.query_one(FormPicture).remove()
        if self._wants_start:
            self._board.begin()

    async def load_settings(self, task: str, values: Mapping[str, Value]) -> None:
        """Put another run's settings into the form. A setting unknown to this version is an error."""
        self._values = settings_to_start_again(task, values)
        if self._board is not None:
            self._board.load(self._values)

    def on_paste(self, event: events.Paste) -> None:
        """A command line pasted anywhere fills the form."""
        event.stop()
        self._take_command(event.text)

    def on_command_pasted(self, message: CommandPasted) -> None:
        """A command line pasted into one setting fills them all."""
        self._take_command(message.text)

    def _take_command(self, text: str) -> None:
        from needle_tui.pasted import settings_of_command

        try:
            pasted = settings_of_command(text)
        except InputError as error:
            self.query_one(HelpLine).show(str(error).replace("\n  ", "; "), role="$warning")
            return
        if pasted.task != "finetune":
            self.query_one(HelpLine).show(
                f"This form does not start `needle {pasted.task}`.", role="$warning"
            )
            return
        self._values = pasted.values
        if self._board is not None:
            self._board.load(self._values)
        self.query_one(HelpLine).show("The form says what the pasted command said.")

    def action_start(self) -> None:
        """Start the run, or say what is missing; a key pressed before the form is there is not lost."""
        self._wants_start = True
        if self._board is not None:
            self._board.begin()

    def action_copy_command(self) -> None:
        """Put the command line on the clipboard."""
        if self._board is not None:
            self._board.copy_command()

    def action_browse(self) -> None:
        """Choose a file for the setting that has the focus, else for the data."""
        if self._board is not None:
            self._board.browse()

    def action_toggle_advanced(self) -> None:
        """Show or hide the settings that most runs leave alone."""
        if self._board is not None:
            self._board.toggle_advanced()

    def action_reasons(self) -> None:
        """Show every reason in full."""
        if self._board is not None:
            self._board.show_reasons()

    def action_make_it_fit(self) -> None:
        """Apply the first change that would make the run fit."""
        if self._board is not None:
            self._board.make_it_fit()

    def action_leave_field(self) -> None:
        """Leave the form, so that single keys act again."""
        self.set_focus(None)
        self.query_one(HelpLine).show(WELCOME)


def settings_to_start_again(task: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """A past run's settings for a new one: its result must not replace the old one's."""
    from_json(task, values)
    return {**values, "out": "", "overwrite": False}
