"""Devices: every interpreter and backend found, what does not work and what would fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message

from needle.units import age_text
from needle_tui.background import in_background
from needle_tui.marks import marks
from needle_tui.messages import InventoryKnown
from needle_tui.screens.base import NeedleScreen
from needle_tui.text import column, fit, indented, inert, wrapped
from needle_tui.theme import style_sheet
from needle_tui.widgets.device_list import DeviceList
from needle_tui.widgets.help_line import HelpLine
from needle_tui.widgets.key_bar import KeyBar
from needle_tui.widgets.lines import Lines
from needle_tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from needle.devices.inventory import Backend, Interpreter, Inventory, Problem

_NAME = 9


class InventoryPane(Lines):
    """One part of the inventory as lines; which part is said by the function it is given."""

    def __init__(self, title: str) -> None:
        super().__init__(classes="panel")
        self.border_title = title
        self._inventory: Inventory | None = None

    def show(self, inventory: Inventory | None) -> None:
        """What is known now."""
        self._inventory = inventory
        self.update_lines()


class BackendList(InventoryPane):
    """Each platform: whether it works, why not, and the command that would fix it."""

    def lines(self, width: int) -> list[Content]:
        """Works first, absent last."""
        if self._inventory is None:
            return [Content.assemble(("  looking at this machine…", "$muted"))]
        order = ("works", "broken", "untried", "absent")
        backends = sorted(self._inventory.backends, key=lambda one: order.index(one.status))
        return [line for backend in backends for line in backend_lines(backend, width)]


class InterpreterList(InventoryPane):
    """Each Python found, with the packages that matter to JAX and what works in it."""

    def lines(self, width: int) -> list[Content]:
        """The one in use first, marked."""
        inventory = self._inventory
        if inventory is None:
            return []
        found: list[Content] = []
        for at, one in enumerate(inventory.interpreters):
            backends = () if at == 0 else inventory.backends_of(one)
            found.extend(interpreter_lines(one, backends, width, used=at == 0))
        return found


class ProblemList(InventoryPane):
    """What is wrong with this machine, in plain words, each with its fix."""

    def lines(self, width: int) -> list[Content]:
        """Nothing wrong is said too."""
        if self._inventory is None:
            return []
        from needle.devices.doctor import findings

        problems = findings(self._inventory)
        if not problems:
            return [Content.assemble((f"  {marks().good} nothing stands in the way", "$success"))]
        return [line for problem in problems for line in problem_lines(problem, width)]


def backend_lines(backend: Backend, width: int) -> list[Content]:
    """`✓ cuda     works    2 devices …`, and the fix below it where there is something to do."""
    mark, role = _mark(backend.status)
    head = Content.assemble(
        (f"{mark} ", role),
        (column(inert(backend.platform), _NAME), "bold"),
        (column(backend.status, 9), role),
    )
    room = max(8, width - head.cell_length)
    reason = wrapped(inert(backend.reason), room)
    found = [Content.assemble(head, (reason[0], "$muted" if backend.status == "absent" else ""))]
    found += indented(reason[1:], head.cell_length, "")
    if backend.fix and backend.status in ("broken", "untried"):
        fix = wrapped(inert(backend.fix), max(8, room - 5))
        found.append(Content.assemble(" " * head.cell_length, ("fix: ", "$accent"), fix[0]))
        found += indented(fix[1:], head.cell_length + 5, "")
    remarks = (line for text in _remarks(backend) for line in wrapped(inert(text), room))
    return found + indented(remarks, head.cell_length, "$muted")


def _remarks(backend: Backend) -> list[str]:
    """Who uses this platform's devices now, and which of them JAX does not see."""
    from needle.devices.doctor import users_text

    told = [f"in use by run {backend.held_by}"] if backend.held_by else []
    told += [f"{device.id}: {users_text(device)}" for device in backend.devices if device.processes]
    return told + [f"{device.id} {device.kind} is hidden from JAX" for device in backend.hidden]


def interpreter_lines(
    one: Interpreter, backends: tuple[Backend, ...], width: int, *, used: bool
) -> list[Content]:
    """`▸ .venv   Python 3.11.7`, its packages, its backends, and what keeps it from training.

    Of one without JAX that is not in use, one line is enough.
    """
    room = max(8, width - 4)
    packages = ", ".join(f"{name} {version}" for name, version in one.packages.items())
    head = Content.assemble(
        (f"{marks().focus if used else ' '} ", "$accent bold"),
        (column(inert(one.label), 16), "bold" if used else ""),
        (f" Python {inert(one.python)}", ""),
        ("" if "jax" in one.packages else "  no JAX", "$muted"),
    )
    if not used and "jax" not in one.packages:
        return [head]
    found = [head, *indented(wrapped(inert(packages), room), 4, "$muted")] if packages else [head]
    tried = [f"{one.platform} {one.status}" for one in backends if one.status != "absent"]
    if tried:
        found += indented(wrapped(", ".join(tried), room), 4, "")
    if one.problem:
        found += indented(wrapped(inert(one.problem), room), 4, "$warning")
        fix = wrapped(inert(one.fix), max(8, room - 5))
        found.append(Content.assemble("    ", ("fix: ", "$accent"), fix[0]))
        found += indented(fix[1:], 9, "")
    return found


def _mark(status: str) -> tuple[str, str]:
    """A mark and a colour for a backend's status."""
    if status == "works":
        return marks().good, "$success"
    if status == "broken":
        return marks().bad, "$error"
    return marks().unchosen if status == "untried" else " ", "$muted"


def problem_lines(problem: Problem, width: int) -> list[Content]:
    """Title, detail and fix."""
    found = [
        Content.assemble((f"{marks().bad} ", "$warning"), (fit(inert(problem.title), width - 2), "bold"))
    ]
    found += indented(wrapped(inert(problem.detail), max(8, width - 2)), 2, "$muted")
    fix = wrapped(inert(problem.fix), max(8, width - 7)) if problem.fix else []
    if fix:
        found.append(Content.assemble(("  fix: ", "$accent"), fix[0]))
        found += indented(fix[1:], 7, "")
    return found


class DevicesScreen(NeedleScreen):
    """The whole inventory."""

    CSS_PATH = style_sheet("devices")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r,f6", "app.probe", "Probe again"),
        Binding("a", "probe_all", "Probe all interpreters"),
    ]

    def compose(self) -> ComposeResult:
        """One scrolling column."""
        yield TopBar("devices")
        with VerticalScroll(id="inventory"):
            yield DeviceList()
            yield BackendList("Backends")
            yield InterpreterList("Interpreters")
            yield ProblemList("Findings")
        yield HelpLine()
        yield KeyBar()

    def on_mount(self) -> None:
        """Follow the app's inventory."""
        self.query_one("#inventory").focus()
        self.watch(self.cockpit, "inventory", self.show_inventory)
        self.watch(self.cockpit, "probing", self.show_inventory, init=False)

    def action_probe_all(self) -> None:
        """Ask every interpreter that has JAX, not only the one in use."""
        app = self.cockpit
        known = app.inventory
        if app.probing or known is None:
            return
        app.probing = True

        def ask() -> Message:
            found = app.context.probe_all(known, lambda backend: None)
            return InventoryKnown(found, probing=False)

        in_background(app, ask, name="probe all")

    def show_inventory(self) -> None:
        """Show what is known now."""
        inventory, probing = self.cockpit.inventory, self.cockpit.probing
        self.query_one(DeviceList).show(inventory, chosen_platform="", probing=probing)
        for pane in self.query(InventoryPane):
            pane.show(inventory)
        self.query_one(HelpLine).show(self._age(), role="$muted")

    def _age(self) -> str:
        inventory = self.cockpit.inventory
        if self.cockpit.probing:
            return "Probing: a child process for each platform runs one operation and its gradient."
        if inventory is None or not inventory.probed_at:
            return "Not probed yet; r probes."
        return f"Probed {age_text(self.cockpit.context.now() - inventory.probed_at)}; r probes again."
