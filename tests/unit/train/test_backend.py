import jax
import pytest

from needle.errors import RunError
from needle.train import backend
from needle.train.backend import check_backend, platform_name, same_platform


def test_the_planned_backend_is_accepted_and_described() -> None:
    facts = check_backend("cpu")
    assert (facts.platform, facts.jax_version) == ("cpu", jax.__version__)
    assert facts.device_count >= 1


def test_another_backend_than_planned_stops_the_run_in_plain_words() -> None:
    with pytest.raises(RunError, match="planned for cuda, but JAX came up on cpu") as caught:
        check_backend("cuda")
    assert "needle devices" in caught.value.remedy


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (AssertionError(), "no NVIDIA device node"),
        (
            RuntimeError(
                "Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so "
                "(set JAX_PLATFORMS='' to automatically choose an available backend)"
            ),
            "did not start: INTERNAL: Failed to open libtpu.so\n",
        ),
    ],
)
def test_a_backend_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def refuse() -> None:
        raise error

    monkeypatch.setattr(backend.jax, "local_devices", refuse)
    with pytest.raises(RunError, match=words):
        check_backend("tpu")


@pytest.mark.parametrize(
    ("default_backend", "version", "name"),
    [
        ("gpu", "PJRT C API\ncuda 12090", "cuda"),
        ("gpu", "PJRT C API\nrocm 60400", "rocm"),
        ("gpu", "something new", "gpu"),
        ("cpu", "cpu", "cpu"),
        ("METAL", "PJRT C API\njax-metal 0.1.1", "METAL"),
    ],
)
def test_a_gpu_is_named_by_its_vendor(default_backend: str, version: str, name: str) -> None:
    assert platform_name(default_backend, version) == name


def test_a_gpu_of_unknown_vendor_is_neither_refused_nor_taken_for_a_cpu() -> None:
    assert same_platform("cuda", "gpu")
    assert same_platform("metal", "METAL")
    assert not same_platform("cpu", "gpu")
    assert not same_platform("cuda", "rocm")
