"""Which runs exist, wherever they were started.

Every folder that ever got a run is remembered in the person's state directory, so that a run started in
another folder is found too.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from needle.config import RunSettings, to_json
from needle.errors import InputError
from needle.runs.liveness import host_name
from needle.runs.record import UNREADABLE, Plan, RunFiles, RunRequest, write_atomically, write_json
from needle.runs.state import observe_directory

RUNS_VARIABLE = "NEEDLE_RUNS"
_MOST_FOLDERS = 500


def default_runs_directory() -> Path:
    """Where runs live: `NEEDLE_RUNS`, else `./runs`."""
    return Path(os.environ.get(RUNS_VARIABLE) or "runs").absolute()


def create_run(
    task: str,
    settings: RunSettings,
    plan: Plan,
    runs_directory: Path,
    name: str = "",
    versions: Mapping[str, str] | None = None,
) -> Path:
    """Make the directory of a new run. Raises InputError when it cannot be made; then nothing is left.

    The id is the time and the name, `20261201-031502-finetune-tools`, with a number when it is taken.
    """
    now = time.time()
    name = name or settings.name or task
    directory = _claim(Path(runs_directory).absolute(), now, name)
    request = RunRequest(
        id=directory.name,
        name=name,
        task=task,
        settings=to_json(settings),
        plan=_portable(plan, RunFiles(directory)),
        host=host_name(),
        created_at=now,
        working_directory=RunFiles(directory).recorded(Path.cwd()),
        versions={"python": sys.version.split()[0], **(versions or {})},
    )
    files = RunFiles(directory)
    try:
        for folder in (files.control, files.checkpoints, files.artifacts):
            folder.mkdir()
        # The directory is a run from the moment this file is there.
        write_json(files.request, request)
    except OSError as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise _cannot_make(directory, error) from None
    _remember(directory.parent)
    return directory


def find_runs(runs_directory: Path | None = None) -> list[Path]:
    """Every readable run of this folder (by default the usual one) and of all folders used before,
    newest first."""
    folders = [runs_directory or default_runs_directory(), *_remembered()]
    found = {
        directory.resolve(): created_at
        for folder in dict.fromkeys(path.absolute() for path in folders)
        for directory, created_at in _runs_in(folder)
    }
    return sorted(found, key=lambda directory: (found[directory], directory.name), reverse=True)


def resolve_run(text: str, runs_directory: Path | None = None) -> Path:
    """The run a person means: its path, its id, the beginning of its id if only one begins so, or `latest`.

    Raises InputError when none or several are meant.
    """
    path = Path(text).expanduser()
    for candidate in (path, path.parent):
        is_path = os.sep in text.rstrip(os.sep) or path.exists()
        if is_path and RunFiles(candidate).request.is_file():
            return candidate.resolve()
    runs = find_runs(runs_directory)
    if text == "latest" and runs:
        return runs[0]
    by_id = [run for run in runs if run.name == text]
    meant = by_id or [run for run in runs if text and run.name.startswith(text)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        names = ", ".join(run.name for run in meant[:5])
        raise InputError(f"{len(meant)} runs begin with {text!r}: {names}", remedy="say more of its id")
    raise InputError(f"no run {text!r}{_suggestion(text, runs)}", remedy="list runs with: needle runs list")


def remove_run(directory: Path | str) -> None:
    """Delete the directory of an ended run. Raises InputError while the run lives, or when it cannot."""
    directory = Path(directory).resolve()
    status = observe_directory(directory)
    if not status.ended:
        raise InputError(
            f"is {status.label}, so it is not deleted",
            where=directory.name,
            remedy=f"stop it first: needle runs stop {directory.name}",
        )
    # Renamed first, so that a deletion that is interrupted leaves no half run in the lists.
    doomed = directory.with_name(f".removing-{directory.name}")
    try:
        os.rename(directory, doomed)
        shutil.rmtree(doomed)
    except OSError as error:
        raise InputError(f"cannot be deleted: {error.strerror}", where=str(error.filename)) from None


def _portable(plan: Plan, files: RunFiles) -> Plan:
    """The plan with its interpreter named from the run directory, as every path in the record is."""
    if not plan.command or not os.path.isabs(plan.command[0]):
        return plan
    command = (files.recorded(plan.command[0]), *plan.command[1:])
    return msgspec.structs.replace(plan, command=command)


def _claim(folder: Path, now: float, name: str) -> Path:
    stem = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{_slug(name)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            directory = folder / (stem if number == 1 else f"{stem}-{number}")
            with contextlib.suppress(FileExistsError):
                directory.mkdir()
                return directory
    except OSError as error:
        raise _cannot_make(folder, error) from None
    raise InputError("has no free name left for a run", where=str(folder))


def _cannot_make(path: Path, error: OSError) -> InputError:
    return InputError(
        f"the run directory cannot be made: {error.strerror}",
        where=str(path),
        remedy=f"choose another place: --runs DIR, or {RUNS_VARIABLE}",
    )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-") or "run"


class _Created(msgspec.Struct):
    id: str
    created_at: float


def _runs_in(folder: Path) -> Iterable[tuple[Path, float]]:
    try:
        names = [entry.name for entry in os.scandir(folder) if not entry.name.startswith(".")]
    except OSError:
        return
    for name in names:
        try:
            content = (folder / name / "run.json").read_bytes()
            yield folder / name, msgspec.json.decode(content, type=_Created).created_at
        except (OSError, *UNREADABLE):
            continue


def _suggestion(text: str, runs: list[Path]) -> str:
    close = difflib.get_close_matches(text, [run.name for run in runs], n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _folders_file() -> Path:
    import platformdirs

    return Path(platformdirs.user_state_dir("needle-tui")) / "run-folders.txt"


def _remembered() -> list[Path]:
    try:
        lines = _folders_file().read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [Path(line) for line in lines if line]


def _remember(folder: Path) -> None:
    """Add a folder to the list; a home that cannot be written only costs finding the run from elsewhere."""
    known = _remembered()
    if folder in known:
        return
    path = _folders_file()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if len(known) < _MOST_FOLDERS:
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{folder}\n")
            return
        kept = [str(other) for other in known if other.is_dir()][-_MOST_FOLDERS + 1 :]
        write_atomically(path, "".join(f"{line}\n" for line in [*kept, folder]).encode())
