"""The environment of a run, by platform and by what the person has set. Ids are rows of the field notes."""

import pytest

from needle.errors import InputError
from needle.launch.environment import plan_environment, requested_backend
from needle.launch.memory_share import MemoryShare

WHEELS = {"nvidia-cudnn-cu12": "9.13"}
SHARE = MemoryShare(0.5, "others hold 60 GiB")


def planned(platform="cuda", inherited=None, *, os_name="linux", **more):
    variables = plan_environment(platform, "0.10.2", inherited or {}, os_name, **more)
    names = [variable.name for variable in variables]
    assert len(names) == len(set(names)), "each variable is decided once"
    assert all(variable.reason for variable in variables)
    return {variable.name: variable for variable in variables}


@pytest.mark.parametrize(
    ("platform", "value"),
    [("cpu", "cpu"), ("cuda", "cuda,cpu"), ("rocm", "rocm,cpu"), ("tpu", "tpu,cpu"), ("METAL", "METAL,cpu")],
)
def test_facts_1_and_2_the_platform_comes_first_and_the_cpu_with_it(platform, value):
    assert planned(platform)["JAX_PLATFORMS"].value == value


def test_a_platform_this_program_does_not_know_is_passed_on():
    assert planned("oneapi")["JAX_PLATFORMS"].value == "oneapi,cpu"


@pytest.mark.parametrize("platform", ["gpu", ""])
def test_row_4_gpu_is_never_passed_on(platform):
    with pytest.raises(InputError):
        plan_environment(platform, "0.10.2", {}, "linux")


@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm", "tpu", "METAL"])
@pytest.mark.parametrize("os_name", ["linux", "darwin"])
def test_nothing_of_ours_is_an_empty_value(platform, os_name):
    assert all(variable.value for variable in planned(platform, os_name=os_name).values())


def test_the_persons_platforms_are_overruled_visibly():
    variable = planned("cuda", {"JAX_PLATFORMS": "cuda"})["JAX_PLATFORMS"]
    assert (variable.value, variable.kept) == ("cuda,cpu", False)
    assert "yours was 'cuda'" in variable.reason


def test_the_persons_platforms_are_kept_when_they_are_the_plan():
    assert planned("cuda", {"JAX_PLATFORMS": "cuda,cpu"})["JAX_PLATFORMS"].kept


@pytest.mark.parametrize(
    "name", ["JAX_PLATFORM_NAME", "JAX_XLA_BACKEND", "JAX_BACKEND_TARGET", "JAX_DEFAULT_DEVICE"]
)
def test_row_9_what_steers_jax_elsewhere_is_taken_out_and_shown(name):
    variable = planned("cuda", {name: "cpu"})[name]
    assert variable.value is None
    assert "yours was 'cpu'" in variable.reason


@pytest.mark.parametrize("name", ["JAX_ENABLE_X64", "JAX_DEBUG_NANS", "JAX_SOMETHING_NEW"])
def test_an_empty_jax_variable_is_taken_out(name):
    assert planned("cpu", {name: ""})[name].value is None


def test_filled_jax_variables_are_kept_and_shown():
    variable = planned("cpu", {"JAX_ENABLE_X64": "1"})["JAX_ENABLE_X64"]
    assert (variable.value, variable.kept) == ("1", True)


def test_row_32_xla_flags_are_the_persons_and_shown():
    variable = planned("cuda", {"XLA_FLAGS": "--xla_gpu_deterministic_ops=true"})["XLA_FLAGS"]
    assert (variable.value, variable.kept) == ("--xla_gpu_deterministic_ops=true", True)


def test_row_32_the_runs_flags_are_added_to_the_persons_and_said():
    inherited = {"XLA_FLAGS": "--xla_a=1 --xla_b=2"}
    variable = planned("cpu", inherited, xla_flags="--xla_b=3 --xla_c=4")["XLA_FLAGS"]
    assert (variable.value, variable.kept) == ("--xla_a=1 --xla_b=3 --xla_c=4", False)
    assert "instead of your --xla_b=2" in variable.reason


@pytest.mark.parametrize(
    ("platform", "os_name", "set_"),
    [
        ("METAL", "darwin", True),
        ("cpu", "darwin", False),
        ("METAL", "linux", False),
        ("cuda", "linux", False),
    ],
)
def test_row_17_pjrt_compatibility_is_set_for_metal_on_a_mac_only(platform, os_name, set_):
    assert ("ENABLE_PJRT_COMPATIBILITY" in planned(platform, os_name=os_name)) is set_


def test_row_22_a_toolkit_leaves_the_library_path_with_its_name():
    inherited = {"LD_LIBRARY_PATH": "/usr/local/cuda-12.1/lib64:/opt/gcc/lib64"}
    variable = planned("cuda", inherited, packages=WHEELS)["LD_LIBRARY_PATH"]
    assert variable.value == "/opt/gcc/lib64"
    assert "/usr/local/cuda-12.1/lib64" in variable.reason


def test_row_22_a_library_path_of_nothing_but_a_toolkit_is_removed_not_emptied():
    variable = planned("cuda", {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"})["LD_LIBRARY_PATH"]
    assert variable.value is None


def test_a_library_path_is_kept_where_it_is_the_only_cuda_there_is():
    inherited = {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"}
    variable = planned("cuda", inherited, packages={"jax-cuda12-plugin": "0.10.2"})["LD_LIBRARY_PATH"]
    assert (variable.value, variable.kept) == ("/usr/local/cuda/lib64", True)


def test_the_drivers_directory_stays_on_the_library_path():
    inherited = {"LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"}
    assert planned("cuda", inherited, packages=WHEELS)["LD_LIBRARY_PATH"].kept


def test_the_library_path_is_nobodys_business_on_a_cpu():
    assert "LD_LIBRARY_PATH" not in planned("cpu", {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"})


def test_gpus_are_numbered_as_nvidia_smi_does():
    assert planned("cuda")["CUDA_DEVICE_ORDER"].value == "PCI_BUS_ID"
    assert "CUDA_DEVICE_ORDER" not in planned("cpu")


def test_the_persons_device_order_is_kept_unless_devices_were_chosen_by_number():
    inherited = {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
    assert planned("cuda", inherited)["CUDA_DEVICE_ORDER"].kept
    chosen = planned("cuda", inherited, device_ids=("cuda:1",))["CUDA_DEVICE_ORDER"]
    assert (chosen.value, chosen.kept) == ("PCI_BUS_ID", False)


@pytest.mark.parametrize(
    ("platform", "inherited", "ids", "name", "value"),
    [
        ("cuda", {}, ("cuda:1",), "CUDA_VISIBLE_DEVICES", "1"),
        ("cuda", {}, ("cuda:0", "cuda:3"), "CUDA_VISIBLE_DEVICES", "0,3"),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "4,2"}, ("cuda:1",), "CUDA_VISIBLE_DEVICES", "2"),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "GPU-ab,GPU-cd"}, ("cuda:0",), "CUDA_VISIBLE_DEVICES", "GPU-ab"),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "4,2"}, ("MIG-5f",), "CUDA_VISIBLE_DEVICES", "MIG-5f"),
        ("rocm", {}, ("rocm:2",), "HIP_VISIBLE_DEVICES", "2"),
    ],
)
def test_chosen_devices_are_named_in_the_systems_own_numbers(platform, inherited, ids, name, value):
    assert planned(platform, inherited, device_ids=ids)[name].value == value


@pytest.mark.parametrize(
    ("platform", "inherited", "ids"),
    [
        ("cuda", {"CUDA_VISIBLE_DEVICES": "4"}, ("cuda:1",)),
        ("cuda", {}, ("rocm:0",)),
        ("cuda", {}, ("cuda:x",)),
        ("tpu", {}, ("tpu:0",)),
    ],
)
def test_a_device_that_cannot_be_chosen_is_refused(platform, inherited, ids):
    with pytest.raises(InputError):
        plan_environment(platform, "0.10.2", inherited, "linux", ids)


def test_jaxs_own_filter_is_taken_out_where_devices_were_chosen():
    inherited = {"JAX_CUDA_VISIBLE_DEVICES": "0"}
    assert planned("cuda", inherited)["JAX_CUDA_VISIBLE_DEVICES"].kept
    assert planned("cuda", inherited, device_ids=("cuda:0",))["JAX_CUDA_VISIBLE_DEVICES"].value is None


def test_the_persons_visible_devices_are_kept_even_when_they_hide_all():
    variable = planned("cuda", {"CUDA_VISIBLE_DEVICES": ""})["CUDA_VISIBLE_DEVICES"]
    assert (variable.value, variable.kept) == ("", True)


def test_row_37_a_memory_fraction_is_set_only_where_others_use_the_device():
    assert "XLA_CLIENT_MEM_FRACTION" not in planned("cuda")
    variable = planned("cuda", memory=SHARE)["XLA_CLIENT_MEM_FRACTION"]
    assert (variable.value, variable.reason) == ("0.5", "others hold 60 GiB")
    assert "XLA_CLIENT_MEM_FRACTION" not in planned("cpu", memory=SHARE)


@pytest.mark.parametrize(
    ("jax", "name"),
    [
        ("0.4.30", "XLA_PYTHON_CLIENT_MEM_FRACTION"),
        ("0.4.38", "XLA_CLIENT_MEM_FRACTION"),
        ("0.10.2", "XLA_CLIENT_MEM_FRACTION"),
        ("", "XLA_CLIENT_MEM_FRACTION"),
    ],
)
def test_the_fraction_has_the_name_that_this_jax_reads(jax, name):
    variables = {variable.name for variable in plan_environment("cuda", jax, {}, "linux", memory=SHARE)}
    assert variables & {"XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"} == {name}


@pytest.mark.parametrize("value", ["false", "0", "False"])
def test_row_36_without_preallocation_no_fraction_is_set_and_the_reason_explains_it(value):
    variables = planned("cuda", {"XLA_PYTHON_CLIENT_PREALLOCATE": value}, memory=SHARE)
    assert "XLA_CLIENT_MEM_FRACTION" not in variables
    assert "not given back before the end" in variables["XLA_PYTHON_CLIENT_PREALLOCATE"].reason


def test_the_persons_fraction_is_kept_with_a_warning_when_it_takes_all():
    variable = planned("cuda", {"XLA_PYTHON_CLIENT_MEM_FRACTION": "1.0"})["XLA_PYTHON_CLIENT_MEM_FRACTION"]
    assert variable.kept
    assert "may fail" in variable.reason


def test_of_two_fractions_jax_is_given_one():
    both = {"XLA_CLIENT_MEM_FRACTION": ".5", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"}
    variables = planned("cuda", both)
    assert variables["XLA_CLIENT_MEM_FRACTION"].value == ".5"
    assert variables["XLA_PYTHON_CLIENT_MEM_FRACTION"].value is None


def test_the_persons_own_fraction_goes_before_ours():
    variables = planned("cuda", {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"}, memory=SHARE)
    assert variables["XLA_PYTHON_CLIENT_MEM_FRACTION"].kept
    assert "XLA_CLIENT_MEM_FRACTION" not in variables


@pytest.mark.parametrize(
    ("platform", "cached"), [("cuda", True), ("rocm", True), ("tpu", True), ("cpu", False), ("METAL", False)]
)
def test_row_94_compiled_steps_are_kept_where_reloading_is_known_to_work(platform, cached):
    variables = planned(platform, cache_directory="/home/u/.cache/needle")
    assert ("JAX_COMPILATION_CACHE_DIR" in variables) is cached
    if cached:
        assert (
            variables["JAX_COMPILATION_CACHE_DIR"].value
            == f"/home/u/.cache/needle/compiled/{platform}-jax0.10.2"
        )


def test_the_persons_compilation_cache_is_kept_with_a_warning_on_a_cpu():
    variable = planned("cpu", {"JAX_COMPILATION_CACHE_DIR": "/c"})["JAX_COMPILATION_CACHE_DIR"]
    assert (variable.value, variable.kept) == ("/c", True)
    assert "crash" in variable.reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PYTHONUNBUFFERED", "1"),
        ("PYTHONFAULTHANDLER", "1"),
        ("PYTHONUTF8", "1"),
        ("NO_COLOR", "1"),
        ("TF_CPP_MIN_LOG_LEVEL", "1"),
    ],
)
def test_rows_81_and_83_the_log_is_prompt_and_plain_unless_the_person_says_otherwise(name, value):
    assert planned("cpu")[name].value == value
    own = planned("cpu", {name: "2"})[name]
    assert (own.value, own.kept) == ("2", True)


def test_row_83_forced_colour_is_taken_out():
    assert planned("cpu", {"FORCE_COLOR": "1"})["FORCE_COLOR"].value is None


def test_only_what_matters_to_the_platform_is_shown():
    inherited = {"NCCL_DEBUG": "INFO", "TPU_NAME": "x", "HSA_OVERRIDE_GFX_VERSION": "11", "EDITOR": "vi"}
    assert planned("cuda", inherited)["NCCL_DEBUG"].kept
    assert not {"TPU_NAME", "HSA_OVERRIDE_GFX_VERSION", "EDITOR"} & planned("cuda", inherited).keys()
    assert planned("tpu", inherited)["TPU_NAME"].kept
    assert planned("rocm", inherited)["HSA_OVERRIDE_GFX_VERSION"].kept


def test_planning_looks_at_nothing_but_its_arguments(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORM_NAME", "tpu")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/local/cuda/lib64")
    first = plan_environment("cuda", "0.10.2", {}, "linux", cache_directory="/c")
    assert not {"JAX_PLATFORM_NAME", "LD_LIBRARY_PATH"} & {variable.name for variable in first}


@pytest.mark.parametrize(
    ("setting", "inherited", "platform", "origin"),
    [
        ("auto", {}, "auto", ""),
        ("", {}, "auto", ""),
        ("cuda", {"JAX_PLATFORMS": "cpu"}, "cuda", "setting"),
        ("metal", {}, "METAL", "setting"),
        ("CUDA", {}, "cuda", "setting"),
        ("oneapi", {}, "oneapi", "setting"),
        ("MyChip", {}, "MyChip", "setting"),
        ("cuda,cpu", {}, "cuda", "setting"),
        ("auto", {"JAX_PLATFORMS": "cpu"}, "cpu", "JAX_PLATFORMS"),
        ("auto", {"JAX_PLATFORMS": "cuda,cpu"}, "cuda", "JAX_PLATFORMS"),
        ("auto", {"JAX_PLATFORMS": "CPU,"}, "cpu", "JAX_PLATFORMS"),
        ("auto", {"JAX_PLATFORMS": "gpu"}, "gpu", "JAX_PLATFORMS"),
        ("auto", {"JAX_PLATFORMS": " , "}, "auto", ""),
        ("auto", {"JAX_PLATFORMS": ""}, "auto", ""),
        ("auto", {"JAX_PLATFORM_NAME": "cpu"}, "cpu", "JAX_PLATFORM_NAME"),
        ("auto", {"JAX_PLATFORM_NAME": "metal"}, "METAL", "JAX_PLATFORM_NAME"),
        ("auto", {"JAX_PLATFORMS": "cuda,cpu", "JAX_PLATFORM_NAME": "cpu"}, "cpu", "JAX_PLATFORM_NAME"),
        ("auto", {"JAX_PLATFORMS": "cuda,cpu", "JAX_PLATFORM_NAME": "gpu"}, "cuda", "JAX_PLATFORM_NAME"),
        ("auto", {"JAX_PLATFORMS": "cpu", "JAX_PLATFORM_NAME": "cuda"}, "cpu", "JAX_PLATFORMS"),
    ],
)
def test_rows_4_5_and_9_who_asks_for_which_backend(setting, inherited, platform, origin):
    found, who = requested_backend(setting, inherited)
    assert found == platform
    assert (origin in who.split() if origin else who == "") or (origin == "setting" and "setting" in who)
