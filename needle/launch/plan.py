"""From settings, inventory and facts to a Plan: pure, quick, and every choice with its reason."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path

from needle.config import FinetuneSettings, to_arguments
from needle.data.report import amount_text, findings_of
from needle.devices.inventory import Device, Interpreter, Inventory
from needle.launch.backend import backend_named, choose_backend
from needle.launch.device_choice import choose_devices
from needle.launch.environment import plan_environment, requested_backend
from needle.launch.interpreters import choose_interpreter, versions_of
from needle.launch.kernels import choose_kernel, choose_precision
from needle.launch.memory_share import memory_share
from needle.launch.placement import choose_placement
from needle.launch.preflight import FinetuneFacts
from needle.launch.rounding import choose_rounding
from needle.runs.record import Decision, MemoryBill, MemoryPart, Plan

RUN_PLACEHOLDER = "{run}"
SAFE_PATH = "-P"
"""No current directory on the import path: a folder named needle there would be taken for this program."""
_BYTES_PER_PACKED_TOKEN = 9
_ROW_STEP = 64
_ADAPTER_COPIES = 4
_RECOMPUTED_ACTIVATIONS, _KEPT_ACTIVATIONS = 14, 62
"""Numbers a token keeps in a layer, in units of d_model; measured on the sample, recomputing and not."""


def make_plan(
    settings: FinetuneSettings, inventory: Inventory, facts: FinetuneFacts, inherited: Mapping[str, str]
) -> Plan:
    """Decide everything about a fine-tuning run. Raises InputError, with its field."""
    python, inventory = choose_interpreter(settings.python, inventory, facts.machine)
    interpreter = inventory.interpreters[0]
    requested, origin = requested_backend(settings.backend, inherited)
    backend = choose_backend(requested, inventory, origin=origin)
    probed = backend_named(inventory, backend.choice)
    devices = choose_devices(settings.devices, backend.choice, probed, inherited)
    device = devices.devices[0] if devices.devices else None
    precision = choose_precision(
        settings.precision,
        backend.choice,
        device.capability if device else "",
        probed.bfloat16 if probed and probed.status == "works" else None,
    )
    kernel = _kernel(settings, backend.choice, device, precision.choice, facts, interpreter)
    placement = choose_placement(settings.placement, _dataset_bytes(facts), device)
    return Plan(
        command=(interpreter.path, SAFE_PATH, "-m", "needle.train", RUN_PLACEHOLDER),
        command_line=tuple(to_arguments("finetune", _shown(settings))),
        interpreter=interpreter.label,
        environment=plan_environment(
            backend.choice,
            interpreter.packages.get("jax", ""),
            inherited,
            device_ids=devices.visible,
            packages=interpreter.packages,
            memory=memory_share(device),
            xla_flags=settings.xla_flags,
        ),
        backend=backend,
        kernel=kernel,
        placement=placement,
        precision=precision,
        base=facts.base_choice,
        memory=_memory_bill(settings, inventory, facts, device, backend.choice, placement, precision.choice),
        total_steps=total_steps(facts.data.usable if facts.data else 0, settings),
        python=python,
        devices=devices.decision,
        versions=versions_of(interpreter),
        rounding=choose_rounding(settings.qat, facts.base.weight_bits if facts.base else ""),
        data=_data_decision(facts),
    )


def _data_decision(facts: FinetuneFacts) -> Decision | None:
    """How much there is, and what the report found."""
    if facts.data is None:
        return None
    report = facts.data.report
    return Decision(amount_text(report), "; ".join(finding.sentence for finding in findings_of(report)))


def total_steps(examples: int, settings: FinetuneSettings) -> int:
    """Optimiser steps of the whole run: each epoch's last batch may be short."""
    validation = min(int(examples * settings.val_split), examples - 1)
    return settings.epochs * math.ceil(max(0, examples - validation) / settings.batch_size)


def _kernel(
    settings: FinetuneSettings,
    platform: str,
    device: Device | None,
    precision: str,
    facts: FinetuneFacts,
    interpreter: Interpreter,
) -> Decision:
    base = facts.base
    return choose_kernel(
        settings.attention,
        platform=platform,
        capability=device.capability if device else "",
        dtype=precision,
        head_dim=base.head_dim if base else 64,
        num_heads=base.num_heads if base else 8,
        num_kv_heads=base.num_kv_heads if base else 4,
        mask_kind="segments",
        length=_padded(facts.data.longest if facts.data else settings.max_len),
        jax_version=interpreter.packages.get("jax", ""),
    )


def _padded(length: int) -> int:
    """The row length that packing rounds up to, which is what a kernel sees."""
    return -(-length // _ROW_STEP) * _ROW_STEP


def _dataset_bytes(facts: FinetuneFacts) -> int:
    """Packed size: token and segment ids as int32 and one mask byte for each token."""
    return facts.data.total_tokens * _BYTES_PER_PACKED_TOKEN if facts.data else 0


def _memory_bill(
    settings: FinetuneSettings,
    inventory: Inventory,
    facts: FinetuneFacts,
    device: Device | None,
    platform: str,
    placement: Decision,
    precision: str,
) -> MemoryBill | None:
    """Arithmetic from the configuration, said to be an estimate; None until base and data are known."""
    base, data = facts.base, facts.data
    if base is None or data is None:
        return None
    number_bytes = 2 if precision == "bfloat16" else 4
    targets = settings.lora_targets.count(",") + 1
    adapter = targets * base.num_layers * settings.lora_rank * 2 * base.d_model
    at_once = min(settings.micro_batch_size or settings.batch_size, settings.batch_size)
    tokens = at_once * min(data.longest, settings.max_len)
    kept = _RECOMPUTED_ACTIVATIONS if platform == "cpu" else _KEPT_ACTIVATIONS
    activations = tokens * base.num_layers * base.d_model * kept * number_bytes
    parts = [
        MemoryPart("weights", base.parameter_count * 4),
        MemoryPart("adapter and optimiser", adapter * 4 * _ADAPTER_COPIES),
        MemoryPart("step", activations),
        MemoryPart("data set", _dataset_bytes(facts) if placement.choice == "device" else 0),
    ]
    if device is None or platform == "cpu":
        host = inventory.host
        used = host.memory_total_bytes - host.memory_available_bytes
        return MemoryBill("host memory", tuple(parts), host.memory_total_bytes, used)
    where = f"{device.id} (unified with the host's)" if device.unified else device.id
    return MemoryBill(where, tuple(parts), device.total_bytes or 0, device.used_bytes or 0)


def _shown(settings: FinetuneSettings) -> FinetuneSettings:
    """Settings as the command line says them: paths below the home directory as `~/…`."""
    home = str(Path.home())
    short = {
        name: "~" + value.removeprefix(home)
        for name in ("data", "checkpoint", "tokenizer", "out", "python")
        if (value := getattr(settings, name)).startswith(home + "/")
    }
    return dataclasses.replace(settings, **short)
