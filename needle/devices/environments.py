"""Python environments at hand, known from their files alone: none of them is started.

.venv*, venv*, env   in the current directory and the ones above it
conda                the active one, those in ~/.conda/environments.txt and in the usual `envs` folders
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from needle.devices.hints import read_text
from needle.errors import InputError

_NEARBY = re.compile(r"\.?venv.*|\.?env")
_PYTHONS = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")
_CONDA_HOMES = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")
_CONDA_PYTHON = re.compile(r"python-(\d+\.\d+\.\d+)-.*\.json")
_MOST = 40
_MOST_ENTRIES = 5000
_ANSWER_LIMIT_S = 20.0
_SELF_PORTRAIT = """import json, sys
print(json.dumps([".".join(map(str, sys.version_info[:3])), sys.prefix, sys.path[1:]]))"""


@dataclass(frozen=True)
class Environment:
    """A Python on this machine. `version` may lack its last number, or be empty where no file tells it."""

    python: str
    prefix: str
    label: str
    version: str = ""
    import_path: tuple[str, ...] = ()
    uses_uv: bool = False
    problem: str = ""


def environments_at_hand(
    directory: Path, home: Path, variables: Mapping[str, str], *, besides: str
) -> tuple[Environment, ...]:
    """Every environment found, the nearest first, without the one whose prefix is `besides`.

    Looks from `directory` up to `home`, or to the root when it is not below `home`.
    """
    found: dict[str, Environment] = {}
    known = {os.path.realpath(besides)}
    for prefix, label in _candidates(directory, home, variables):
        real = os.path.realpath(prefix)
        if real in known or len(found) >= _MOST:
            continue
        known.add(real)
        label = label if label not in found else str(prefix)
        environment = read_environment(prefix, label)
        if environment is not None:
            found[label] = environment
    return tuple(found.values())


def read_environment(prefix: Path, label: str = "") -> Environment | None:
    """What the files below `prefix` tell; None when it is no virtual or conda environment."""
    settings = _settings(read_text(prefix / "pyvenv.cfg"))
    if not settings and not (prefix / "conda-meta").is_dir():
        return None
    version = _numbers(settings.get("version") or settings.get("version_info", "")) or _conda_version(prefix)
    python = next((prefix / name for name in _PYTHONS if os.path.lexists(prefix / name)), None)
    import_path = _site_directories(prefix, version)
    if settings.get("include-system-site-packages", "").lower() == "true":
        import_path += _site_directories(Path(settings.get("home", "/nowhere")).parent, version)
    problem = ""
    if python is None or not python.exists():
        problem = "its Python is gone; make the environment anew"
    return Environment(
        str(python or prefix / _PYTHONS[0]),
        str(prefix),
        label or prefix.name,
        version,
        import_path,
        "uv" in settings,
        problem,
    )


def environment_at(text: str, directory: Path, variables: Mapping[str, str]) -> Environment:
    """The environment that a path or a program's name means: `.venv-gpu`, `~/gpu/bin/python`, `python3.12`.

    One that its files do not tell enough about is started and asked. Raises InputError when it is none.
    """
    path = Path(os.path.abspath(directory / Path(text).expanduser()))
    if path.is_dir():
        environment = read_environment(path)
        if environment is None:
            raise InputError(
                f"{text} is no Python environment: it has neither pyvenv.cfg nor conda-meta", field="python"
            )
        return environment
    if not os.path.lexists(path) and os.sep not in text:
        path = Path(shutil.which(text, path=variables.get("PATH")) or path)
    environment = read_environment(path.parent.parent) if path.parent.name in ("bin", "Scripts") else None
    if environment is not None:
        return environment
    if not path.exists():
        raise InputError(f"there is no interpreter {text}", field="python")
    return _asked(path, variables)


def _candidates(directory: Path, home: Path, variables: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    active = variables.get("VIRTUAL_ENV")
    if active:
        yield Path(active), Path(active).name
    for folder in _upwards(directory, home):
        for name in _nearby_names(folder):
            yield folder / name, name if folder == directory else os.path.relpath(folder / name, directory)
    for prefix in _conda_prefixes(home, variables):
        yield prefix, "base" if (prefix / "condabin").is_dir() else prefix.name


def _upwards(directory: Path, home: Path) -> list[Path]:
    folders = [directory, *directory.parents]
    return folders[: folders.index(home) + 1] if home in folders else folders


def _nearby_names(folder: Path) -> list[str]:
    """Environments in a folder by their usual names; of a crowded folder only the commonest are tried."""
    names = [".venv", "venv"]
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
                if _NEARBY.fullmatch(entry.name) and entry.name not in names:
                    names.append(entry.name)
    except OSError:
        return []
    return [*names[:2], *sorted(names[2:])]


def _conda_prefixes(home: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """The active environment first, then those of each installation of conda."""
    active = variables.get("CONDA_PREFIX")
    if active:
        yield Path(active)
    for line in read_text(home / ".conda/environments.txt").splitlines():
        if line.strip():
            yield Path(line.strip())
    homes = [home / name for name in _CONDA_HOMES]
    if variables.get("MAMBA_ROOT_PREFIX"):
        homes.insert(0, Path(variables["MAMBA_ROOT_PREFIX"]))
    if variables.get("CONDA_EXE"):
        homes.insert(0, Path(variables["CONDA_EXE"]).parent.parent)
    if active:
        homes.insert(0, Path(active).parent.parent if Path(active).parent.name == "envs" else Path(active))
    for folder in dict.fromkeys(homes):
        yield folder
        yield from _folders(folder / "envs")


def _folders(folder: Path) -> Iterable[Path]:
    try:
        return [folder / name for name in sorted(os.listdir(folder))]
    except OSError:
        return []


def _settings(text: str) -> dict[str, str]:
    """The lines of a pyvenv.cfg."""
    parts = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, equals, value in parts if equals}


def _numbers(version: str) -> str:
    """`3.11.7.final.0` -> `3.11.7`."""
    found = re.match(r"\d+(\.\d+){1,2}", version)
    return found.group() if found else ""


def _conda_version(prefix: Path) -> str:
    names = (path.name for path in _folders(prefix / "conda-meta"))
    return next((found[1] for name in names if (found := _CONDA_PYTHON.fullmatch(name))), "")


def _site_directories(prefix: Path, version: str) -> tuple[str, ...]:
    """Where this Python looks for packages. Debian's own Python has `dist-packages`."""
    minor = ".".join(version.split(".")[:2])
    libraries = [prefix / f"lib/python{minor}"] if minor else list(prefix.glob("lib/python3.*"))
    places = [library / name for library in libraries for name in ("site-packages", "dist-packages")]
    if prefix == Path("/usr"):
        places += [
            Path(f"/usr/local/lib/python{minor}/dist-packages"),
            Path("/usr/lib/python3/dist-packages"),
        ]
    return tuple(str(place) for place in (*places, prefix / "Lib/site-packages") if place.is_dir())


def _asked(python: Path, variables: Mapping[str, str]) -> Environment:
    """Start an interpreter that is no environment of its own, and have it tell where it looks."""
    try:
        done = subprocess.run(
            [str(python), "-c", _SELF_PORTRAIT],
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_LIMIT_S,
            check=True,
        )
        version, prefix, import_path = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise InputError(f"{python} does not answer", field="python") from None
    except (OSError, subprocess.CalledProcessError, ValueError, TypeError) as error:
        said = getattr(error, "stderr", b"") or b""
        words = said.decode("utf-8", "replace").strip().splitlines()
        why = f": {words[0][:200]}" if words else ""
        raise InputError(f"{python} is no working Python interpreter{why}", field="python") from None
    return Environment(str(python), str(prefix), python.name, str(version), tuple(import_path))
