"""Which Python trains: the one asked for, else the first of the inventory, with what keeps the others."""

import pytest

from needle.devices.records import Backend, Device, Host, Interpreter, Inventory
from needle.errors import InputError
from needle.launch.interpreters import choose_interpreter, versions_of

CPU = Backend("cpu", "works", (Device("cpu:0", "cpu", "cpu", 0),), "right")
CUDA = Backend("cuda", "works", (Device("cuda:0", "cuda", "NVIDIA H200", 0),), "right")
THIS = Interpreter("/p/.venv/bin/python", ".venv", "3.11.7", {"jax": "0.10.2"})
GPU = Interpreter(
    "/p/.venv-gpu/bin/python", ".venv-gpu", "3.12.4", {"jax": "0.10.1", "jax-cuda12-plugin": "0.10.1"}
)
BARE = Interpreter("/p/env/bin/python", "env", "3.12.4", {}, "JAX is not installed here", "pip install it")
MACHINE = Inventory(
    Host("box", 2, 2**34, 2**33), (THIS, GPU, BARE), (CPU,), elsewhere={GPU.path: (CUDA, CPU), BARE.path: ()}
)


def test_nothing_asked_for_takes_the_first_and_says_what_of_the_others():
    decision, seen = choose_interpreter("", MACHINE)
    assert seen == MACHINE
    assert (decision.choice, decision.reason) == (".venv", "the best at hand: Python 3.11.7, jax 0.10.2")
    assert decision.rejected == {".venv-gpu": "not asked for", "env": "JAX is not installed here"}


@pytest.mark.parametrize("text", [".venv-gpu", "/p/.venv-gpu", "/p/.venv-gpu/bin/python"])
def test_the_one_asked_for_brings_its_own_backends_and_packages(text):
    decision, seen = choose_interpreter(text, MACHINE)
    assert decision.choice == ".venv-gpu"
    assert decision.reason == "asked for: Python 3.12.4, jax 0.10.1, jax-cuda12-plugin 0.10.1"
    assert seen.backends == (CUDA, CPU)
    assert seen.interpreters[0] == GPU


def test_one_that_cannot_train_is_refused_with_the_line_that_changes_it():
    with pytest.raises(InputError) as caught:
        choose_interpreter("env", MACHINE)
    assert caught.value.field == "python"
    assert str(caught.value) == "env: JAX is not installed here\n  pip install it"


def test_when_none_can_train_the_start_is_refused_and_not_left_to_fail():
    with pytest.raises(InputError, match="JAX is not installed"):
        choose_interpreter("", Inventory(MACHINE.host, (BARE,), ()))


def test_saved_settings_that_name_an_interpreter_that_is_gone_say_which_there_are():
    with pytest.raises(InputError) as caught:
        choose_interpreter(".venv-tpu", MACHINE)
    assert caught.value.field == "python"
    assert "found: .venv, .venv-gpu, env" in str(caught.value)


def test_one_found_by_its_path_outside_the_inventory_is_taken():
    far = Interpreter("/far/bin/python", "far", "3.12.4", {"jax": "0.10.2"})
    named = Inventory(MACHINE.host, (far, THIS), (CUDA,), elsewhere={THIS.path: (CPU,)})
    decision, seen = choose_interpreter("/far", MACHINE, named)
    assert (decision.choice, seen.backends) == ("far", (CUDA,))


def test_fresh_knowledge_goes_before_what_was_found_by_the_path_earlier():
    stale = Inventory(MACHINE.host, (GPU,), ())
    assert choose_interpreter(".venv-gpu", MACHINE, stale)[1].backends == (CUDA, CPU)


def test_the_record_keeps_the_versions_of_the_interpreter_that_trains():
    assert versions_of(GPU) == {"python": "3.12.4", "jax": "0.10.1", "jax-cuda12-plugin": "0.10.1"}
