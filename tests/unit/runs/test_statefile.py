"""Saving the state: on change, as a heartbeat, and on a full disk."""

from pathlib import Path

import msgspec
import pytest

from needle.runs import statefile
from needle.runs.record import RunFiles, RunState, read_state
from needle.runs.statefile import StateFile

STATE = RunState(phase="running", host="h", boot_id="b", step=1)


def change(**fields: object) -> RunState:
    return msgspec.structs.replace(STATE, **fields)


def test_what_did_not_change_is_not_written_until_a_heartbeat_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(statefile.time, "monotonic", lambda: now[0])
    file = StateFile(RunFiles(tmp_path))
    file.save(STATE)
    (tmp_path / "state.json").unlink()
    now[0] += 1.9
    assert file.save(STATE)
    assert not (tmp_path / "state.json").exists()
    now[0] += 0.2
    file.save(STATE)
    assert (tmp_path / "state.json").exists()


def test_only_what_weighs_is_forced_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[bool] = []
    monkeypatch.setattr(statefile, "write_json", lambda *_, durable: forced.append(durable))
    file = StateFile(RunFiles(tmp_path))
    for state in (STATE, change(step=2), change(step=2, phase="stopping"), change(step=3, phase="stopping")):
        file.save(state)
    assert forced == [True, False, True, False]


def test_a_save_that_fails_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    file = StateFile(RunFiles(folder))
    assert not file.save(STATE)
    folder.mkdir()
    assert file.save(STATE)
    recorded = read_state(folder)
    assert recorded is not None
    assert recorded.heartbeat_at > 0


def test_the_last_state_goes_over_the_old_one_when_there_is_no_room_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = StateFile(RunFiles(tmp_path))
    file.save(change(reason="a long reason that is longer than the next"))

    def full(*_: object, durable: bool) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(statefile, "write_json", full)
    file.save_last(change(phase="failed", reason="no space"))
    recorded = read_state(tmp_path)
    assert recorded is not None
    assert (recorded.phase, recorded.reason) == ("failed", "no space")
