"""A planned environment, given to a real interpreter: JAX starts in it, on the planned platform."""

import json
import os
import subprocess
import sys

import pytest

from needle.launch.environment import plan_environment

SCRIPT = """
import json, jax, jax.extend.backend
platforms = sorted(jax.extend.backend.backends())
print(json.dumps([jax.default_backend(), platforms, bool(jax.config.jax_enable_x64)]))
"""


def start(inherited):
    """[default backend, all backends, x64] of JAX in the environment planned from `inherited`."""
    environment = {**os.environ, **inherited}
    for variable in plan_environment("cpu", "0.10.2", environment):
        if variable.value is None:
            del environment[variable.name]
        else:
            environment[variable.name] = variable.value
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "inherited",
    [
        {"JAX_PLATFORMS": "tpu"},
        {"JAX_PLATFORMS": "CPU,"},
        {"JAX_PLATFORMS": "gpu", "JAX_PLATFORM_NAME": "gpu"},
        {"JAX_PLATFORM_NAME": "cuda", "JAX_XLA_BACKEND": "cuda"},
        {"JAX_DEFAULT_DEVICE": "cuda"},
        {"JAX_ENABLE_X64": "", "JAX_DEBUG_NANS": ""},
        {"XLA_CLIENT_MEM_FRACTION": ".5", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"},
    ],
    ids=lambda inherited: ",".join(f"{name}={value}" for name, value in inherited.items()),
)
def test_whatever_the_person_has_set_the_planned_platform_alone_starts(inherited):
    assert start(inherited) == ["cpu", ["cpu"], False]


def test_a_switch_the_person_set_reaches_the_run():
    assert start({"JAX_ENABLE_X64": "1"}) == ["cpu", ["cpu"], True]
