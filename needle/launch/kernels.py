"""Which attention kernel and which number format, and why. Pure.

The rules for cuDNN are those of jax.nn.dot_product_attention (jax/_src/cudnn/fused_attention_stablehlo.py,
read in JAX 0.4.38 and 0.10.2) and of the reports named beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from needle.devices.platforms import platform_label, version_tuple
from needle.errors import InputError
from needle.runs.record import Decision

KERNELS = ("cudnn", "xla", "manual")
MaskKind = Literal["causal", "lengths", "window", "segments", "arbitrary"]
MASK_WORDS: dict[str, str] = {
    "causal": "a causal mask",
    "lengths": "a causal mask with lengths",
    "window": "a causal sliding window",
    "segments": "packed rows, each causal within its own segment",
    "arbitrary": "a mask of any form",
}
_FUSED_MASKS = ("causal", "lengths", "window")
_HALF_DTYPES = ("bfloat16", "float16")
_AMPERE, _HOPPER, _BLACKWELL_ULTRA = (8, 0), (9, 0), (10, 3)
_WIDE_HEADS_JAX = (0, 6)
_ROCM_BFLOAT16 = ("gfx90a", "gfx94", "gfx95", "gfx11", "gfx12")


@dataclass(frozen=True)
class KernelProbe:
    """What a small forward and backward of the fused kernel gave on the real shapes of this device."""

    passed: bool
    text: str


def choose_kernel(
    requested: str,
    *,
    platform: str,
    capability: str,
    dtype: str,
    head_dim: int,
    num_heads: int,
    num_kv_heads: int,
    mask_kind: MaskKind,
    length: int,
    jax_version: str,
    cudnn_version: int | None = None,
    probe: KernelProbe | None = None,
) -> Decision:
    """The kernel for these shapes, why, and for each other one why not.

    `length` is the padded sequence length, `capability` is empty when unknown, `cudnn_version` as cuDNN
    counts (91100 is 9.11). Raises InputError when `requested` names a kernel that cannot run this.
    """
    impossible = _cudnn_rule(
        platform, capability, dtype, head_dim, num_heads, num_kv_heads, jax_version, cudnn_version
    ) or _mask_rule(mask_kind, length)
    unwanted = _cudnn_hesitation(mask_kind, probe)
    if requested == "cudnn":
        failed = probe.text if probe is not None and not probe.passed else ""
        if impossible or failed:
            raise InputError(
                f"the cudnn attention kernel cannot run this: {impossible or failed}",
                remedy="choose auto, or xla",
                field="attention",
            )
        return Decision("cudnn", f"asked for{_cost(mask_kind)}", _others("cudnn", "not asked for"))
    not_cudnn = impossible or unwanted
    if requested in KERNELS:
        rejected = _others(requested, "not asked for")
        return Decision(requested, "asked for", rejected | ({"cudnn": impossible} if impossible else {}))
    if requested != "auto":
        raise InputError(
            f"unknown attention kernel {requested!r}", remedy=f"auto, {', '.join(KERNELS)}", field="attention"
        )
    return _automatic(platform, mask_kind, dtype, not_cudnn)


def choose_precision(
    requested: str, platform: str, capability: str, bfloat16: bool | None = None
) -> Decision:
    """float32 or bfloat16 for the computation. `bfloat16` is what the probe found, None when not probed.

    Raises InputError for bfloat16 on a device where the probe found it wrong.
    """
    if requested not in ("auto", "float32", "bfloat16"):
        raise InputError(
            f"unknown precision {requested!r}", remedy="auto, float32 or bfloat16", field="precision"
        )
    against = _against_bfloat16(platform, capability, bfloat16)
    if requested == "bfloat16":
        if bfloat16 is False and platform != "cpu":
            raise InputError(
                f"bfloat16 does not work on {platform_label(platform)} here: the probe's product failed",
                remedy="choose float32",
                field="precision",
            )
        return Decision(
            "bfloat16", f"asked for; {against}" if against else "asked for", _not_asked("float32")
        )
    if requested == "float32":
        return Decision("float32", "asked for", _not_asked("bfloat16"))
    if against:
        return Decision("float32", "exact, and right everywhere", {"bfloat16": against})
    why = f"{_hardware(platform, capability)} multiplies bfloat16 in hardware; what is trained stays float32"
    return Decision("bfloat16", why, {"float32": "twice the memory and slower here"})


def _cudnn_rule(
    platform: str,
    capability: str,
    dtype: str,
    head_dim: int,
    num_heads: int,
    num_kv_heads: int,
    jax_version: str,
    cudnn_version: int | None,
) -> str:
    """The first rule of cuDNN's fused attention that is broken; empty when all hold."""
    version = version_tuple(capability)
    if platform != "cuda":
        return f"it is NVIDIA's, and this runs on {platform_label(platform)}"
    if version and version < _AMPERE:
        return f"it needs compute capability 8.0 (Ampere) or newer, this device has {capability}"
    if dtype not in _HALF_DTYPES:
        return f"it takes bfloat16 or float16, not {dtype}"
    widest = 256 if version >= _HOPPER and version_tuple(jax_version) >= _WIDE_HEADS_JAX else 128
    if head_dim % 8 or head_dim > widest:
        return f"its head size must be a multiple of 8 and at most {widest} here, not {head_dim}"
    if num_heads % num_kv_heads:
        return f"its query heads must be a multiple of the key heads, not {num_heads} and {num_kv_heads}"
    if version == _BLACKWELL_ULTRA and cudnn_version is not None and cudnn_version < 91100:
        return f"compute capability 10.3 needs cuDNN 9.11, here is {_cudnn_words(cudnn_version)}"
    return ""


def _mask_rule(mask_kind: MaskKind, length: int) -> str:
    """Lengths at which cuDNN is wrong or refuses once a mask must be given as a bias."""
    if mask_kind in _FUSED_MASKS:
        return ""
    if length % 2:
        return f"with a mask it needs an even length, not {length}"
    if length % 128 == 64:
        # pytorch#196678: NaN in dQ on H100 and H200.
        return f"with a mask its gradient is NaN at lengths like {length} (64 more than a multiple of 128)"
    return ""


def _cudnn_hesitation(mask_kind: MaskKind, probe: KernelProbe | None) -> str:
    """Why `auto` leaves a possible cuDNN alone; empty when it takes it."""
    if mask_kind not in _FUSED_MASKS:
        return f"{MASK_WORDS[mask_kind]}: it would need the whole length x length mask as a bias tensor"
    if probe is None:
        return "it was not tried on this device at these shapes yet"
    return "" if probe.passed else f"it was tried at these shapes: {probe.text}"


def _automatic(platform: str, mask_kind: MaskKind, dtype: str, not_cudnn: str) -> Decision:
    if platform == "METAL":
        why = "plain operations only: fused ones are unreliable on Metal"
        return Decision("manual", why, {"cudnn": not_cudnn, "xla": "uses operations that Metal may lack"})
    slower = "the reference: same numbers, more memory and time"
    if not not_cudnn:
        why = f"fused on this device, {dtype}, {MASK_WORDS[mask_kind]}; tried forward and backward"
        return Decision("cudnn", why, {"xla": "keeps the length x length scores in memory", "manual": slower})
    return Decision("xla", "runs on every backend, with any mask", {"cudnn": not_cudnn, "manual": slower})


def _cost(mask_kind: MaskKind) -> str:
    if mask_kind in _FUSED_MASKS:
        return f": {MASK_WORDS[mask_kind]} needs no mask in memory"
    return f"; {MASK_WORDS[mask_kind]} become a length x length bias in memory"


def _others(chosen: str, why: str) -> dict[str, str]:
    return {kernel: why for kernel in KERNELS if kernel != chosen}


def _not_asked(name: str) -> dict[str, str]:
    return {name: "not asked for"}


def _against_bfloat16(platform: str, capability: str, bfloat16: bool | None) -> str:
    """What speaks against bfloat16 here; empty when nothing does."""
    if platform == "cpu":
        return "on a CPU it saves memory but no time"
    if platform == "METAL":
        return "Metal's support is incomplete"
    if bfloat16 is False:
        return "the probe's bfloat16 product failed on this device"
    if platform == "tpu":
        return ""
    if not capability:
        return "" if bfloat16 and platform not in ("cuda", "rocm") else "the device is not known yet"
    if platform == "cuda" and version_tuple(capability) < _AMPERE:
        return f"compute capability {capability} has no bfloat16 hardware: slower than float32"
    if platform == "rocm" and not capability.startswith(_ROCM_BFLOAT16):
        return f"{capability} is not known to have bfloat16 hardware"
    return ""


def _hardware(platform: str, capability: str) -> str:
    if platform == "cuda" and capability:
        return f"compute capability {capability}"
    return capability or platform_label(platform)


def _cudnn_words(version: int) -> str:
    """91002 -> 9.10.2, as cuDNN 9 counts."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"
