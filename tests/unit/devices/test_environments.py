"""Python environments found by their files: virtual ones nearby and above, conda's, and those named."""

import os
import sys
from pathlib import Path

import pytest

from needle.devices.environments import environment_at, environments_at_hand, read_environment
from needle.errors import InputError
from tests.unit.devices.conftest import make_environment


@pytest.fixture
def home(tmp_path):
    """A home with a project two folders below it."""
    (tmp_path / "work/project").mkdir(parents=True)
    return tmp_path


def labels(home, **variables):
    found = environments_at_hand(home / "work/project", home, variables, besides="/this/.venv")
    return [environment.label for environment in found]


def conda(prefix: Path, version="3.12.7"):
    """A conda environment as conda leaves it."""
    make_environment(prefix, version)
    (prefix / "pyvenv.cfg").unlink()
    (prefix / "conda-meta").mkdir()
    (prefix / f"conda-meta/python-{version}-hab00c5b_0_cpython.json").write_text("{}")
    (prefix / "conda-meta/history").write_text("")


def test_virtual_environments_are_found_here_and_above_up_to_the_home(home):
    for place in ("work/project/.venv-gpu", "work/project/venv", "work/.venv", ".venv"):
        make_environment(home / place)
    make_environment(home.parent / ".venv-of-another")
    assert labels(home) == ["venv", ".venv-gpu", "../.venv", "../../.venv"]


def test_outside_the_home_everything_above_is_looked_at(home):
    make_environment(home / "work/.venv")
    found = environments_at_hand(home / "work/project", Path("/nowhere"), {}, besides="/this/.venv")
    assert "../.venv" in [environment.label for environment in found]


def test_a_folder_with_the_name_but_without_the_marks_is_no_environment(home):
    (home / "work/project/.venv/bin").mkdir(parents=True)
    (home / "work/project/venv").write_text("a file")
    assert labels(home) == []


def test_this_environment_is_not_found_twice_whatever_link_leads_to_it(home):
    make_environment(home / "work/real")
    (home / "work/project/.venv").symlink_to(home / "work/real")
    (home / "work/project/venv").symlink_to(home / "work/real")
    assert labels(home) == [".venv"]
    here = environments_at_hand(home / "work/project", home, {}, besides=str(home / "work/real"))
    assert here == ()


def test_the_activated_environment_is_found_wherever_it_is(home):
    make_environment(home / "elsewhere/tools")
    assert labels(home, VIRTUAL_ENV=str(home / "elsewhere/tools")) == ["tools"]


def test_conda_environments_are_found_by_each_of_the_places_conda_has(home):
    for name in ("miniforge3", "miniforge3/envs/gpu", "far/listed", "active/envs/now"):
        conda(home / name)
    (home / ".conda").mkdir()
    (home / ".conda/environments.txt").write_text(f"{home}/far/listed\n\n/gone/away\n")
    (home / "miniforge3/condabin").mkdir()
    assert labels(home, CONDA_PREFIX=str(home / "active/envs/now")) == ["now", "listed", "base", "gpu"]


def test_of_two_environments_with_one_name_the_second_goes_by_its_path(home):
    conda(home / "a/envs/gpu")
    conda(home / "b/envs/gpu")
    variables = {"CONDA_PREFIX": str(home / "a/envs/gpu"), "MAMBA_ROOT_PREFIX": str(home / "b")}
    assert labels(home, **variables) == ["gpu", str(home / "b/envs/gpu")]


def test_a_crowded_folder_still_gives_its_usual_environment(home, monkeypatch):
    monkeypatch.setattr("needle.devices.environments._MOST_ENTRIES", 3)
    for number in range(20):
        (home / f"work/project/data-{number}.json").write_text("")
    make_environment(home / "work/project/.venv")
    assert labels(home) == [".venv"]


@pytest.mark.parametrize(
    ("lines", "version"),
    [
        ("version = 3.12.4\n", "3.12.4"),
        ("uv = 0.5.1\nversion_info = 3.13.1\n", "3.13.1"),
        ("version_info = 3.11.7.final.0\n", "3.11.7"),
        ("home = /usr/bin\n", ""),
    ],
    ids=["venv", "uv", "virtualenv", "untold"],
)
def test_the_version_is_read_as_each_tool_writes_it(tmp_path, lines, version):
    make_environment(tmp_path / "env", "3.12.4")
    (tmp_path / "env/pyvenv.cfg").write_text(lines)
    environment = read_environment(tmp_path / "env")
    assert environment.version == version
    assert environment.uses_uv == ("uv" in lines)


def test_packages_of_an_untold_version_are_looked_for_all_the_same(tmp_path):
    make_environment(tmp_path / "env", "3.12.4")
    (tmp_path / "env/pyvenv.cfg").write_text("home = /usr/bin\n")
    assert read_environment(tmp_path / "env").import_path == (
        str(tmp_path / "env/lib/python3.12/site-packages"),
    )


def test_an_environment_that_sees_the_systems_packages_has_both(tmp_path):
    base = tmp_path / "opt/python"
    (base / "lib/python3.12/site-packages").mkdir(parents=True)
    make_environment(tmp_path / "env", "3.12.4")
    settings = f"home = {base}/bin\nversion = 3.12.4\ninclude-system-site-packages = true\n"
    (tmp_path / "env/pyvenv.cfg").write_text(settings)
    assert read_environment(tmp_path / "env").import_path == (
        str(tmp_path / "env/lib/python3.12/site-packages"),
        str(base / "lib/python3.12/site-packages"),
    )


def test_an_environment_whose_python_was_removed_says_so(tmp_path):
    make_environment(tmp_path / "env")
    (tmp_path / "env/bin/python").unlink()
    (tmp_path / "env/bin/python").symlink_to(tmp_path / "gone/python3.12")
    environment = read_environment(tmp_path / "env")
    assert environment.python == str(tmp_path / "env/bin/python")
    assert "gone" in environment.problem


@pytest.mark.parametrize("text", [".venv-gpu", ".venv-gpu/bin/python", "{home}/.venv-gpu", "./.venv-gpu/"])
def test_a_path_to_an_environment_or_to_its_interpreter_names_it(tmp_path, text):
    make_environment(tmp_path / ".venv-gpu")
    environment = environment_at(text.format(home=tmp_path), tmp_path, {})
    assert (environment.python, environment.version) == (str(tmp_path / ".venv-gpu/bin/python"), "3.12.4")


@pytest.mark.parametrize("how", ["path", "name"])
def test_an_interpreter_that_is_no_environment_is_asked_for_itself(tmp_path, how):
    python = tmp_path / "python-mine"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    text = str(python) if how == "path" else "python-mine"
    environment = environment_at(text, tmp_path / "elsewhere", {"PATH": str(tmp_path)})
    assert environment.python == str(python)
    assert environment.version == ".".join(map(str, sys.version_info[:3]))
    assert any(path.endswith("site-packages") for path in environment.import_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no-such-python", "there is no interpreter no-such-python"),
        ("{tmp}", "neither pyvenv.cfg nor conda-meta"),
        ("{tmp}/broken", "no working Python interpreter: it burns"),
        ("{tmp}/text", "no working Python interpreter"),
    ],
)
def test_what_is_no_interpreter_is_refused_at_its_field(tmp_path, text, words):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho it burns >&2\nexit 1\n")
    broken.chmod(0o755)
    (tmp_path / "text").write_text("no program")
    with pytest.raises(InputError) as caught:
        environment_at(text.format(tmp=tmp_path), tmp_path, dict(os.environ))
    assert words in str(caught.value)
    assert caught.value.field == "python"


def test_an_interpreter_that_hangs_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("needle.devices.environments._ANSWER_LIMIT_S", 0.2)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    with pytest.raises(InputError, match="does not answer"):
        environment_at(str(python), tmp_path, dict(os.environ))
