"""The supervisor's decisions as a table: what is known, what is seen, what follows."""

import signal
from dataclasses import replace

import msgspec
import pytest

from needle.runs.deaths import Evidence, Exit
from needle.runs.events import Told
from needle.runs.lifecycle import Action, Ask, Finish, Graces, Seen, Signal, Supervised, Tell, next_step
from needle.runs.record import RunState

GRACES = Graces(running_s=60, starting_s=5, term_s=10)
RUNNING = Supervised(RunState(phase="running", host="h", boot_id="b", pid=7, step=3, total=9), GRACES)
STARTING = Supervised(RunState(phase="starting", host="h", boot_id="b", pid=7, total=9), GRACES)
TOLD = Told(attempt=1, phase="running")


def seen(now: float = 100.0, **facts: object) -> Seen:
    return replace(Seen(now=now, at=1000.0 + now, told=TOLD, step=3), **facts)  # type: ignore[arg-type]


def after(known: Supervised, *moments: Seen) -> tuple[Supervised, list[Action]]:
    done: list[Action] = []
    for moment in moments:
        known, actions = next_step(known, moment)
        done += actions
    return known, done


def signals(actions: list[Action]) -> list[int]:
    return [action.number for action in actions if isinstance(action, Signal)]


def told_stages(actions: list[Action]) -> list[str]:
    return [action.stage for action in actions if isinstance(action, Tell)]


def test_nothing_new_changes_nothing() -> None:
    assert next_step(RUNNING, seen()) == (RUNNING, ())


@pytest.mark.parametrize(
    ("told", "step", "expected"),
    [
        (Told(attempt=1), 0, "starting"),
        (Told(attempt=1, phase="compiling"), 0, "compiling"),
        (Told(attempt=1, phase="running"), 0, "running"),
        (Told(attempt=1), 1, "running"),
        (Told(attempt=2, phase="running"), 0, "starting"),
    ],
)
def test_the_phase_is_what_this_attempts_trainer_says(told: Told, step: int, expected: str) -> None:
    known, _ = next_step(STARTING, seen(told=told, step=step))
    assert known.state.phase == expected


def test_step_and_total_follow_the_trainer_and_steps_never_go_back() -> None:
    known, _ = next_step(RUNNING, seen(told=Told(attempt=1, total=20), step=5))
    assert (known.state.step, known.state.total) == (5, 20)
    known, _ = next_step(known, seen(step=4))
    assert (known.state.step, known.state.total) == (5, 20)


def test_the_ladder_has_three_rungs_with_their_waits() -> None:
    asked = seen(100, request=b"stop 1")
    known, actions = next_step(RUNNING, asked)
    assert (known.state.phase, known.state.stop_stage) == ("stopping", "asked")
    assert (told_stages(list(actions)), signals(list(actions))) == (["asked"], [])
    known, actions = next_step(known, replace(asked, now=159.9))
    assert actions == ()
    known, actions = next_step(known, replace(asked, now=160.0))
    assert (known.state.stop_stage, signals(list(actions))) == ("term", [signal.SIGTERM, signal.SIGCONT])
    known, actions = next_step(known, replace(asked, now=169.9))
    assert actions == ()
    known, actions = next_step(known, replace(asked, now=170.0))
    assert (known.state.stop_stage, signals(list(actions))) == ("kill", [signal.SIGKILL])
    _, actions = next_step(known, replace(asked, now=171.0))
    assert actions == ()


@pytest.mark.parametrize(
    ("told", "step", "step_s", "grace_s"),
    [
        (Told(attempt=1), 0, 0.0, 5.0),
        (Told(attempt=1, phase="compiling", step=40), 0, 0.0, 5.0),
        (Told(attempt=1, phase="running"), 0, 0.0, 60.0),
        (Told(attempt=1), 3, 0.0, 60.0),
        (Told(attempt=1), 3, 90.0, 270.0),
    ],
)
def test_the_patience_fits_what_there_is_to_save(
    told: Told, step: int, step_s: float, grace_s: float
) -> None:
    facts = {"told": told, "step": step, "step_s": step_s, "request": b"stop 1"}
    known, _ = next_step(STARTING, seen(0, **facts))
    before, _ = next_step(known, seen(grace_s - 0.1, **facts))
    assert before.stage == "asked"
    then, _ = next_step(known, seen(grace_s, **facts))
    assert then.stage == "term"


def test_now_sends_term_at_once_and_again_kill() -> None:
    known, actions = after(RUNNING, seen(request=b"now 1"))
    assert signals(actions)[0] == signal.SIGTERM
    assert Ask() in actions
    known, actions = after(known, seen(request=b"now 1"))
    assert actions == []
    known, actions = after(known, seen(request=b"now 2"))
    assert signals(actions) == [signal.SIGKILL]


def test_a_second_plain_request_changes_nothing() -> None:
    known, _ = after(RUNNING, seen(request=b"stop 1"))
    _, actions = after(known, seen(request=b"stop 2"))
    assert actions == []


def test_a_signal_to_the_supervisor_is_a_request_and_a_second_one_means_now() -> None:
    known, actions = after(RUNNING, seen(signals=1))
    assert (known.stage, Ask() in actions) == ("asked", True)
    known, actions = after(known, seen(signals=1, request=b"stop\n"))
    assert (known.stage, actions) == ("asked", [])
    known, actions = after(known, seen(signals=2, request=b"stop\n"))
    assert known.stage == "term"


def test_a_process_that_survives_kill_is_explained_once() -> None:
    known, _ = after(RUNNING, seen(0, request=b"now 1"), seen(1, request=b"now 2"))
    known, actions = after(known, seen(40, request=b"now 2"), seen(80, request=b"now 2"))
    assert len(actions) == 1
    assert "driver" in known.state.reason


def told_end(outcome: str, reason: str = "") -> Told:
    return Told(attempt=1, phase="running", outcome=outcome, reason=reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("told", "end", "phase", "words"),
    [
        (told_end("finished"), Exit(code=0), "finished", ""),
        (told_end("stopped", "asked"), Exit(code=0), "stopped", "asked"),
        (told_end("failed", "the GPU is full"), Exit(code=1), "failed", "the GPU is full"),
        (told_end("failed"), Exit(code=1), "failed", "ValueError: x"),
        (told_end("finished"), Exit(signal=11), "finished", "SIGSEGV while shutting down"),
        (told_end("finished"), Exit(code=3), "finished", "exit code 3 while shutting down"),
        (TOLD, Exit(code=0), "finished", ""),
        (TOLD, Exit(code=2), "failed", "ValueError: x"),
        (TOLD, Exit(signal=9), "killed", "SIGKILL"),
        (TOLD, Exit(signal=15), "killed", "SIGTERM"),
        (Told(attempt=2, outcome="finished"), Exit(code=2), "failed", "ValueError: x"),
    ],
)
def test_how_an_end_that_nobody_asked_for_counts(told: Told, end: Exit, phase: str, words: str) -> None:
    facts = {"told": told, "exit": end, "evidence": Evidence(last_words="ValueError: x")}
    known, actions = next_step(RUNNING, seen(**facts))
    assert known.state.phase == phase
    assert words in known.state.reason if words else known.state.reason == ""
    assert (known.state.exit_code, known.state.signal) == (end.code, end.signal)
    assert (known.state.ended_at, actions) == (1100.0, (Finish(),))


@pytest.mark.parametrize(
    ("stage", "told", "end", "phase"),
    [
        ("asked", TOLD, Exit(code=0), "stopped"),
        ("asked", told_end("stopped"), Exit(code=0), "stopped"),
        ("asked", told_end("finished"), Exit(code=0), "finished"),
        ("asked", TOLD, Exit(code=1), "failed"),
        ("asked", TOLD, Exit(signal=9), "killed"),
        ("term", TOLD, Exit(signal=15), "stopped"),
        ("term", TOLD, Exit(code=143), "stopped"),
        ("term", TOLD, Exit(code=0), "stopped"),
        ("kill", TOLD, Exit(signal=9), "killed"),
        ("kill", told_end("stopped"), Exit(signal=9), "stopped"),
    ],
)
def test_how_an_end_on_request_counts(stage: str, told: Told, end: Exit, phase: str) -> None:
    state = msgspec.structs.replace(RUNNING.state, phase="stopping", stop_stage=stage)
    stopping = replace(RUNNING, state=state, stage=stage, stage_since=90.0, request=b"stop 1")  # type: ignore[arg-type]
    known, _ = next_step(stopping, seen(told=told, exit=end, request=b"stop 1"))
    assert known.state.phase == phase
    assert known.state.stop_stage == stage


def test_a_request_heeded_before_the_supervisor_saw_it_is_recorded_all_the_same() -> None:
    known, actions = after(RUNNING, seen(request=b"stop 1", exit=Exit(code=0)))
    assert (known.state.phase, known.state.stop_stage) == ("stopped", "asked")
    assert (told_stages(actions), actions[-1]) == (["asked"], Finish())
