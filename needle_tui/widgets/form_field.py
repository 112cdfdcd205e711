"""One setting of the form: its name, its value, a remark beside it, and what is wrong with it below."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input

from needle.config import Field
from needle_tui.form_layout import LABEL_WIDTH
from needle_tui.marks import marks
from needle_tui.messages import CommandPasted
from needle_tui.text import fit, inert, wrapped
from needle_tui.widgets.form_picture import choice_text
from needle_tui.widgets.path_suggester import PathSuggester

REMARK_WIDTH = 18


class FormField(Widget):
    """What every kind of field shares: label, remark and problem are drawn here, the value by the kind."""

    DEFAULT_CSS = """
    FormField { height: auto; width: 100%; text-wrap: nowrap; }
    """
    ALLOW_SELECT = False

    class Changed(Message):
        """The value of a setting changed; it may be text that is not valid."""

        def __init__(self, name: str, value: str) -> None:
            super().__init__()
            self.name = name
            self.value = value

    def __init__(self, field: Field, value: str) -> None:
        super().__init__(id=f"field-{field.name}", markup=False)
        self.field = field
        self.value = value
        self._problem = ""
        self._remark = ""

    def show(self, *, problem: str = "", remark: str = "") -> None:
        """Mark the field with what is wrong with it, or with a remark when all is well."""
        problem, remark = inert(problem), inert(remark)
        if (problem, remark) == (self._problem, self._remark):
            return
        moved = bool(problem or self._problem)
        self._problem, self._remark = problem, remark
        self.set_class(bool(problem), "-wrong")
        self.refresh(layout=moved)

    @property
    def problem(self) -> str:
        """What is wrong with the value; empty when nothing is."""
        return self._problem

    def set_value(self, value: str) -> None:
        """Replace the value from outside, as loading another run's settings does."""
        raise NotImplementedError

    def first_line(self, width: int) -> Content:
        """The label, the value where the kind draws it itself, and the remark."""
        return Content.assemble(self.label(), " " * max(0, width - LABEL_WIDTH))

    def label(self) -> Content:
        """The setting's name; marked when it has the focus or a problem, never by colour alone."""
        focused = self.has_focus or self.has_focus_within
        mark = marks().bad if self._problem else marks().focus if focused else " "
        role = "$error" if self._problem else "$accent bold" if focused else "$muted"
        text = fit(self.field.label, LABEL_WIDTH - 3)
        return Content.assemble((f"{mark} {text}".ljust(LABEL_WIDTH), role))

    def render(self) -> Content:
        """The field's line, and its problem below it."""
        width = self.content_size.width
        below = [Content.assemble("  ", (line, "$error")) for line in self._problem_lines(width)]
        return Content("\n").join([self.first_line(width), *below])

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One line, and those of the problem."""
        return 1 + len(self._problem_lines(width))

    def _problem_lines(self, width: int) -> list[str]:
        return wrapped(self._problem, max(8, width - 3)) if self._problem and width else []

    def on_descendant_focus(self) -> None:
        """Mark the label."""
        self.refresh()

    def on_descendant_blur(self) -> None:
        """Unmark the label."""
        self.refresh()


class ValueInput(Input):
    """A one-line text box that sends nothing while nobody types, and leaves ↑ and ↓ to the form."""

    DEFAULT_CSS = """
    ValueInput { border: none; height: 1; padding: 0; background: $surface; }
    ValueInput:ansi { text-style: underline; }
    TextField > ValueInput { width: 1fr; }
    ValueInput:focus { border: none; background: $panel; background-tint: $foreground 0%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, value: str, suggester: Suggester | None = None) -> None:
        super().__init__(value, compact=True, select_on_focus=False, suggester=suggester)
        self.cursor_blink = False

    def on_paste(self, event: events.Paste) -> None:
        """A pasted command line is for the whole form; other text is typed here."""
        from needle_tui.pasted import looks_like_a_command

        if looks_like_a_command(event.text):
            event.prevent_default()
            event.stop()
            self.post_message(CommandPasted(event.text))


class TextField(FormField):
    """A setting typed as text: numbers, names and paths."""

    def compose(self) -> ComposeResult:
        """The text box; everything around it is drawn by the field."""
        box = ValueInput(self.value, PathSuggester() if self.field.kind == "path" else None)
        box.styles.margin = (0, 1, 0, LABEL_WIDTH)
        yield box

    def first_line(self, width: int) -> Content:
        """Label and, at the right of the box, the remark."""
        space = max(0, width - LABEL_WIDTH - cell_len(self._remark) - 1)
        return Content.assemble(self.label(), " " * space, (self._remark, "$muted"))

    def show(self, *, problem: str = "", remark: str = "") -> None:
        """Mark the field; the box makes room for a remark."""
        remark = fit(inert(remark), REMARK_WIDTH)
        if remark != self._remark:
            room = cell_len(remark) + 2 if remark else 1
            self.query_one(ValueInput).styles.margin = (0, room, 0, LABEL_WIDTH)
        super().show(problem=problem, remark=remark)

    def set_value(self, value: str) -> None:
        """Replace the text."""
        self.query_one(ValueInput).value = value

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell the form."""
        event.stop()
        if event.value != self.value:
            self.value = event.value
            self.post_message(self.Changed(self.field.name, event.value))


class ChoiceField(FormField, can_focus=True):
    """A setting with a few choices: all of them shown where they fit, the chosen one marked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "Previous choice", show=False),
        Binding("right,space", "step(1)", "Next choice", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, field: Field, value: str, choices: tuple[str, ...]) -> None:
        super().__init__(field, value)
        self.choices = choices
        self._include(value)

    def offer(self, choices: tuple[str, ...]) -> None:
        """Offer other values; the chosen one stays among them."""
        self.choices = choices
        self._include(self.value)
        self.refresh()

    def set_value(self, value: str) -> None:
        """Choose a value."""
        if value != self.value:
            self.value = value
            self._include(value)
            self.refresh()
            self.post_message(self.Changed(self.field.name, value))

    def _include(self, value: str) -> None:
        if value not in self.choices:
            self.choices = (*self.choices, value)

    def action_step(self, by: int) -> None:
        """Choose the next or previous value, round the end."""
        self.set_value(self.choices[(self.choices.index(self.value) + by) % len(self.choices)])

    def first_line(self, width: int) -> Content:
        """Label and choices."""
        return Content.assemble(self.label(), choice_text(self.value, self.choices, width - LABEL_WIDTH))

    def on_focus(self) -> None:
        """Mark the label."""
        self.refresh()

    def on_blur(self) -> None:
        """Unmark the label."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Choose what was clicked, or the next one where only one is shown."""
        end = LABEL_WIDTH
        for choice in self.choices:
            start, end = end, end + len(choice) + 4
            if start <= event.x < end:
                self.set_value(choice)
                return
