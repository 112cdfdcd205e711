"""The Launch screen: real files are looked at, a real plan is made, and starting starts a supervisor."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from needle.devices.records import Interpreter, Inventory
from needle.runs.record import read_request
from needle.runs.state import observe_directory
from needle_tui.app import NeedleApp
from needle_tui.context import Context
from needle_tui.screens.reasons import ReasonsScreen
from needle_tui.widgets.form_field import FormField, ValueInput
from needle_tui.widgets.launch_board import LaunchBoard
from tests.ui.reading import Until, screen_text
from tests.ui.recorded import record_run


@pytest.fixture
def form(golden: Path, until: Until) -> Callable[..., object]:
    """Fills fields as a person would and waits until their files were looked at."""

    async def fill(pilot: Pilot[int], **values: str) -> LaunchBoard:
        app = pilot.app
        await until(pilot, lambda: app.screen.query(LaunchBoard), "the form")
        board = app.screen.query_one(LaunchBoard)
        given = {"data": str(golden / "train24.jsonl"), "checkpoint": str(golden / "tiny.pkl"), **values}
        for name, value in given.items():
            board.form.field_widget(name).set_value(value)
        await pilot.pause()
        await until(
            pilot, lambda: not board.is_looking and (board.outcome.plan or board.outcome.problems), "a plan"
        )
        return board

    return fill


async def test_the_form_opens_on_the_embedded_sample(cockpit: Callable[..., NeedleApp], until: Until) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.screen.query(LaunchBoard), "the form")
        values = app.screen.query_one(LaunchBoard).form.values
        assert (values["data"], values["checkpoint"], values["epochs"]) == ("sample", "sample", "10")
        assert "^s starts this run" in screen_text(app)


async def test_every_choice_shows_its_reason(
    cockpit: Callable[..., NeedleApp], form: Callable[..., object], until: Until
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 50)) as pilot:
        await form(pilot)
        text = screen_text(app)
        assert "24 examples" in text
        assert "Backend    cuda" in text
        assert "JAX_PLATFORMS=" in text
        assert "$ needle finetune" in text
        await until(pilot, lambda: "fits" in screen_text(app), "the verdict on memory")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("epochs", "0", "must be at least 1, not 0"),
        ("lr", "1e9", "must be at most 1"),
        ("batch_size", "many", "must be a whole number, not 'many'"),
    ],
)
async def test_a_bad_number_is_marked_at_its_field(
    cockpit: Callable[..., NeedleApp],
    form: Callable[..., object],
    until: Until,
    name: str,
    value: str,
    words: str,
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        board = await form(pilot, **{name: value})
        assert isinstance(board, LaunchBoard)
        assert words in board.form.field_widget(name).problem
        assert "✗" in screen_text(app)


@pytest.mark.parametrize("name", ["data", "checkpoint", "tokenizer"])
async def test_a_missing_file_is_marked_at_its_field(
    cockpit: Callable[..., NeedleApp], form: Callable[..., object], name: str
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        board = await form(pilot, **{name: "/nowhere/at-all"})
        assert isinstance(board, LaunchBoard)
        assert "no such file" in board.form.field_widget(name).problem


async def test_a_broken_data_file_is_told_with_its_line(
    cockpit: Callable[..., NeedleApp], form: Callable[..., object], tmp_path: Path
) -> None:
    (tmp_path / "broken.jsonl").write_text('{"query": "half\n', encoding="utf-8")
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        board = await form(pilot, data=str(tmp_path / "broken.jsonl"))
        assert isinstance(board, LaunchBoard)
        assert "line 1" in board.form.field_widget("data").problem
        board = await form(pilot, data=str(tmp_path / "empty.jsonl"))
        assert isinstance(board, LaunchBoard)
        assert "empty" in board.form.field_widget("data").problem


async def test_start_says_what_is_missing_instead_of_failing(
    cockpit: Callable[..., NeedleApp], form: Callable[..., object], runs_directory: Path, until: Until
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        await form(pilot, epochs="0")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "Cannot start" in screen_text(app), "the refusal")
        assert "epochs" in screen_text(app)
        assert list(runs_directory.iterdir()) == []


async def test_an_impossible_choice_is_marked_at_its_field(
    cockpit: Callable[..., NeedleApp], form: Callable[..., object]
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        board = await form(pilot, backend="tpu")
        assert isinstance(board, LaunchBoard)
        assert "libtpu" in board.form.field_widget("backend").problem


async def test_keys_choose_and_the_plan_follows_at_once(
    cockpit: Callable[..., NeedleApp], form: Callable[..., object]
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        board = await form(pilot)
        assert isinstance(board, LaunchBoard)
        board.form.field_widget("backend").focus()
        await pilot.press("right", "right")
        assert board.form.values["backend"] == "cpu"
        assert board.outcome.plan is not None
        assert board.outcome.plan.backend.choice == "cpu"


async def test_typing_in_a_field_never_switches_screens_and_escape_gives_the_keys_back(
    cockpit: Callable[..., NeedleApp], form: Callable[..., object], until: Until
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        board = await form(pilot)
        assert isinstance(board, LaunchBoard)
        board.form.field_widget("epochs").query_one(ValueInput).focus()
        await pilot.press("end", "3", "q")
        assert board.form.values["epochs"] == "103q"
        assert app.open_name == "launch"
        await pilot.press("escape", "3")
        await until(pilot, lambda: app.open_name == "runs", "Runs opening")


async def test_the_focused_field_explains_itself(
    cockpit: Callable[..., NeedleApp], form: Callable[..., object]
) -> None:
    app = cockpit()
    async with app.run_test(size=(80, 24)) as pilot:
        board = await form(pilot)
        assert isinstance(board, LaunchBoard)
        board.form.field_widget("seed").query_one(ValueInput).focus()
        await pilot.pause()
        assert "seed of the split" in screen_text(app)


async def test_reasons_are_given_in_full_where_the_screen_is_small(
    cockpit: Callable[..., NeedleApp], form: Callable[..., object], until: Until
) -> None:
    app = cockpit()
    async with app.run_test(size=(80, 24)) as pilot:
        await form(pilot)
        await pilot.press("f3")
        await until(pilot, lambda: isinstance(app.screen, ReasonsScreen), "the reasons")
        assert "Not chosen" in screen_text(app) or "Chosen" in screen_text(app)


async def test_advanced_settings_come_out_on_a_key(
    cockpit: Callable[..., NeedleApp], form: Callable[..., object]
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 40)) as pilot:
        board = await form(pilot)
        assert isinstance(board, LaunchBoard)
        assert not board.form.field_widget("tokenizer").display
        await pilot.press("ctrl+t")
        assert all(field.display for field in board.form.query(FormField))


async def test_a_past_runs_settings_can_be_edited_and_started_again(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    record_run(runs_directory, "tools")
    app = cockpit("runs")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.rows, "listing the runs")
        await pilot.press("e")
        await until(pilot, lambda: app.screen.query(LaunchBoard), "Launch with its form")
        values = app.screen.query_one(LaunchBoard).form.values
        assert (values["name"], values["epochs"], values["lr"]) == ("tools", "10", "3e-3")


async def test_one_key_starts_a_run_in_its_own_process_that_can_be_stopped_from_monitor(
    context: Context, inventory: Inventory, form: Callable[..., object], runs_directory: Path, until: Until
) -> None:
    here = dataclasses.replace(
        inventory, interpreters=(Interpreter(sys.executable, "this", "3", {"jax": "0"}),)
    )
    app = NeedleApp(
        dataclasses.replace(
            context, now=time.time, known_inventory=lambda: here, probe=lambda known, tell: here
        )
    )
    async with app.run_test(size=(120, 36)) as pilot:
        await form(pilot, backend="cpu", epochs="500", name="started-here")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.open_name == "monitor", "moving to Monitor")
        (directory,) = runs_directory.iterdir()
        assert read_request(directory).settings["name"] == "started-here"
        await until(pilot, lambda: "started-here" in screen_text(app), "the run on Monitor")
        await pilot.press("s")
        await until(pilot, lambda: "Stop started-here?" in screen_text(app), "the question")
        await pilot.press("y")
        await until(pilot, lambda: "stopped" in screen_text(app), "the end of the run", within_s=60)
        assert observe_directory(directory).phase == "stopped"


async def test_a_look_at_the_machine_that_fails_is_told_and_ends(context: Context, until: Until) -> None:
    def broken() -> Inventory:
        raise RuntimeError("the driver answered nonsense")

    app = NeedleApp(dataclasses.replace(context, known_inventory=broken))
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: "the driver answered nonsense" in screen_text(app), "the notice")
        assert not app.probing


async def test_a_run_that_does_not_fit_says_by_how_much_and_a_key_makes_it_fit(
    context: Context, inventory: Inventory, form: Callable[..., object], until: Until
) -> None:
    cuda, *others = inventory.backends
    tiny = dataclasses.replace(cuda.devices[0], total_bytes=40 << 20, used_bytes=0)
    full = dataclasses.replace(inventory, backends=(dataclasses.replace(cuda, devices=(tiny,)), *others))
    app = NeedleApp(
        dataclasses.replace(context, known_inventory=lambda: full, probe=lambda known, tell: full)
    )
    async with app.run_test(size=(120, 40)) as pilot:
        board = await form(pilot, batch_size="4096")
        assert isinstance(board, LaunchBoard)
        await until(pilot, lambda: "does not fit" in screen_text(app), "the verdict")
        assert "short" in screen_text(app)
        await pilot.press("f7")
        await until(pilot, lambda: "✓ fits" in screen_text(app), "a run that fits")
        assert int(board.form.values["batch_size"]) < 4096


async def test_start_waits_for_the_probe_of_its_backend_unless_asked_again(
    context: Context, inventory: Inventory, form: Callable[..., object], runs_directory: Path, until: Until
) -> None:
    cuda, *others = inventory.backends
    untried = dataclasses.replace(
        inventory, backends=(dataclasses.replace(cuda, status="untried", reason="a GPU is seen"), *others)
    )
    answered = threading.Event()

    def slow_probe(known: Inventory, tell: object) -> Inventory:
        answered.wait(30)
        return inventory

    app = NeedleApp(dataclasses.replace(context, known_inventory=lambda: untried, probe=slow_probe))
    async with app.run_test(size=(120, 36)) as pilot:
        await form(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "Starts as soon as cuda has been probed" in screen_text(app), "the words")
        assert list(runs_directory.iterdir()) == []
        answered.set()
        await until(pilot, lambda: app.open_name == "monitor", "the start")
