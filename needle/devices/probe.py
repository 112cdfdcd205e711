"""The probe child: what one JAX platform can really do, told as one line of JSON.

    python -m needle.devices.probe PLATFORM

The parent sets JAX_PLATFORMS before this starts. Only the standard library and JAX are imported, so that any
interpreter can run this file, with or without needle. Listing devices proves little (rows 18 and 22 of the
field notes): a matrix product and its gradient are computed and compared.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
from typing import TextIO

LIMIT_VARIABLE = "NEEDLE_PROBE_LIMIT_S"
NO_NVIDIA_NODE = "no NVIDIA device node (/dev/nvidia0, /dev/nvidiactl or /dev/dxg) on this machine"
NO_JAX = "JAX is not installed in this interpreter"
WORKS = "an operation and its gradient were right"
LOADED = "needle probe: loaded "
_TOLERANCE = 0.02
_TEXT_LIMIT = 400

Report = dict[str, object]


def main(arguments: list[str]) -> int:
    """Print the report of the platform named in `arguments`; 0 when it works, 1 when not."""
    if len(arguments) != 1:
        print("usage: python -m needle.devices.probe PLATFORM", file=sys.stderr)
        return 2
    platform = arguments[0]
    _end_by_itself()
    os.environ.setdefault("JAX_PLATFORMS", platform)
    answer = _own_stdout()
    report = probe(platform)
    if report["status"] != "works":
        _tell_libraries()
    print(json.dumps(report), file=answer, flush=True)
    return 0 if report["status"] == "works" else 1


def probe(platform: str) -> Report:
    """The fields of a Backend. Starts the platform in this process."""
    plugins = _PluginErrors()
    logging.getLogger("jax._src.xla_bridge").addHandler(plugins)
    try:
        return _started(platform)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        return _report(platform, "absent" if missing == "jax" else "broken", _missing(missing, error))
    except Exception as error:
        return _report(platform, "broken", _failure(platform, error, plugins))


def _started(platform: str) -> Report:
    import jax

    devices = jax.local_devices()
    if platform != "cpu" and jax.default_backend() == "cpu":
        return _report(platform, "broken", f"JAX was asked for {platform} and started the CPU instead")
    wrong = operation_problem("float32")
    if wrong:
        return _report(platform, "broken", wrong)
    report = _report(platform, "works", WORKS)
    report["bfloat16"] = not operation_problem("bfloat16")
    report["devices"] = [_device(platform, index, device) for index, device in enumerate(devices)]
    return report


def operation_problem(dtype: str) -> str:
    """What is wrong with a matrix product and its gradient on the default device; empty when nothing is.

    The numbers are small integers, so that bfloat16 and TF32 products are close to exact.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    left = (np.arange(64 * 128).reshape(64, 128) * 7 % 5 - 2).astype(np.float64)
    right = (np.arange(128 * 32).reshape(128, 32) * 3 % 7 - 3).astype(np.float64)

    def loss(weight: jax.Array, batch: jax.Array) -> jax.Array:
        return 0.5 * jnp.sum(jnp.square((batch @ weight).astype(jnp.float32)))

    try:
        value, gradient = jax.jit(jax.value_and_grad(loss))(
            jnp.asarray(right, dtype=dtype), jnp.asarray(left, dtype=dtype)
        )
        got = np.asarray(gradient.astype(jnp.float32), np.float64)
        got_value = float(value)
    except Exception as error:
        return f"a {dtype} matrix product and its gradient failed: {_one_line(error)}"
    product = left @ right
    wanted, wanted_value = left.T @ product, 0.5 * float(np.square(product).sum())
    near = abs(got_value - wanted_value) <= _TOLERANCE * wanted_value
    if near and float(np.abs(got - wanted).max()) <= _TOLERANCE * float(np.abs(wanted).max()):
        return ""
    return f"a {dtype} matrix product or its gradient came out wrong"


def _device(platform: str, index: int, device: object) -> Report:
    statistics: dict[str, int] = {}
    with contextlib.suppress(Exception):
        # A device that does not count its memory answers None or raises; neither is a failure.
        statistics = device.memory_stats() or {}  # type: ignore[attr-defined]
    capability = ""
    with contextlib.suppress(Exception):
        capability = str(getattr(device, "compute_capability", ""))
    return {
        "id": f"{platform}:{index}",
        "platform": platform,
        "kind": str(getattr(device, "device_kind", platform)),
        "index": index,
        "total_bytes": statistics.get("bytes_limit"),
        "used_bytes": statistics.get("bytes_in_use"),
        "capability": capability,
    }


def _report(platform: str, status: str, reason: str) -> Report:
    return {"platform": platform, "status": status, "reason": reason, "devices": [], "bfloat16": False}


def _missing(name: str, error: Exception) -> str:
    return NO_JAX if name == "jax" else f"JAX cannot be imported: {_one_line(error)}"


def _failure(platform: str, error: Exception, plugins: _PluginErrors) -> str:
    """The first thing that went wrong, in one line; JAX's last line often only says what followed from it."""
    if isinstance(error, AssertionError) and not str(error) and platform == "cuda":
        return NO_NVIDIA_NODE
    first = plugins.first_of(platform)
    return first or _one_line(error)


class _PluginErrors(logging.Handler):
    """Keeps what plugins raised while JAX started them: JAX only logs it and goes on without them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage() if record.args else str(record.msg)
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self.seen.append((message, _one_line(error)))

    def first_of(self, platform: str) -> str:
        """The first error of a plugin whose name has the platform's name in it."""
        mark = platform.lower()
        return next((f"its plugin raised {text}" for where, text in self.seen if mark in where.lower()), "")


def _one_line(error: BaseException) -> str:
    """`ValueError: text`, without JAX's advice and without line breaks."""
    text = " ".join(str(error).split())
    text = text.split(" (set JAX_PLATFORMS='' to")[0].split(" (you may need to uninstall")[0]
    if text.startswith("Unable to initialize backend"):
        text = text.partition(": ")[2] or text
        return text[:_TEXT_LIMIT]
    name = type(error).__name__
    return (f"{name}: {text}" if text else name)[:_TEXT_LIMIT]


def _tell_libraries() -> None:
    """Which cuDNN this process loaded: a wrong one is told by its version, and found by its path (row 22)."""
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "libcudnn" in line}
        for path in sorted(paths, key=len):
            print(f"{LOADED}{path}", file=sys.stderr)


def _own_stdout() -> TextIO:
    """Keep stdout for the report: whatever a plugin or a C++ library prints goes to stderr."""
    kept = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return kept


def _end_by_itself() -> None:
    """A probe whose parent died ends too, even when it hangs in a driver: SIGALRM needs no Python."""
    limit = os.environ.get(LIMIT_VARIABLE, "")
    if hasattr(signal, "alarm") and limit.isdigit():
        signal.alarm(max(1, int(limit)))


def _without_own_directory() -> None:
    """Started as a file, this directory comes first on the import path and could hide others' modules."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


if __name__ == "__main__":
    _without_own_directory()
    sys.exit(main(sys.argv[1:]))
