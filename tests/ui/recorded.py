"""Runs written to the documented format, the same in every byte that a screen shows."""

from __future__ import annotations

import json
import math
import os
import random
from pathlib import Path

from needle.runs.liveness import boot_id, host_name, start_time
from needle.runs.record import (
    Decision,
    DeviceSample,
    MemoryBill,
    MemoryPart,
    Phase,
    Plan,
    RunFiles,
    RunRequest,
    RunState,
    SystemSample,
    Variable,
    write_json,
)

NOW = 1_764_560_000.0
GIB = 1 << 30
STEPS_PER_EPOCH = 20


def plan(total_steps: int) -> Plan:
    """A plan as `make_plan` would return it for the embedded sample on a GPU."""
    return Plan(
        command=("/usr/bin/python3", "-m", "needle.train", "{run}"),
        command_line=(
            "needle",
            "finetune",
            "sample",
            "--checkpoint",
            "sample",
            "--epochs",
            "10",
            "--lr",
            "3e-3",
        ),
        interpreter=".venv",
        environment=(
            Variable("JAX_PLATFORMS", "cuda,cpu", "one backend, with the CPU beside it for host arrays"),
            Variable("XLA_CLIENT_MEM_FRACTION", "0.9", "yours", kept=True),
        ),
        backend=Decision("cuda", "probed: 1 device, an operation and its gradient were right"),
        kernel=Decision("cudnn", "bfloat16, head 64, packed segments: the fastest that is right here"),
        placement=Decision(
            "device", "1.2 MiB is small beside 78.0 GiB free on cuda:0: no transfer in the step"
        ),
        precision=Decision("bfloat16", "compute capability 9.0 has it in hardware"),
        base=Decision("sample", "the small base that comes with needle was asked for"),
        memory=MemoryBill(
            "cuda:0", (MemoryPart("weights", GIB // 16), MemoryPart("step", 3 * GIB)), 139 * GIB
        ),
        total_steps=total_steps,
    )


def record_run(
    runs: Path,
    name: str,
    *,
    phase: Phase = "finished",
    steps: int = 200,
    total: int = 200,
    age_s: float = 3600.0,
    reason: str = "",
    nonfinite_at: int | None = None,
    seed: int = 0,
) -> Path:
    """Write one run; a live one is carried by this very process, so that it is found alive."""
    directory = runs / f"20261201-0300{seed:02d}-{name}"
    files = RunFiles(directory)
    for folder in (files.control, files.checkpoints, files.artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    created = NOW - age_s
    write_json(files.request, _request(directory.name, name, total, created))
    write_json(files.state, _state(phase, steps, total, created, reason))
    _write_metrics(files, steps, seed, nonfinite_at)
    _write_events(files, steps, total, phase, reason)
    _write_system(files, steps)
    files.log.write_text(_log_text(steps), encoding="utf-8")
    return directory


def _request(run_id: str, name: str, total: int, created: float) -> RunRequest:
    settings: dict[str, str | int | float | bool] = {
        "data": "sample",
        "checkpoint": "sample",
        "epochs": 10,
        "lr": 3e-3,
        "name": name,
    }
    return RunRequest(run_id, name, "finetune", settings, plan(total), "gpu-box", created)


def _state(phase: Phase, steps: int, total: int, created: float, reason: str) -> RunState:
    live = phase in ("starting", "compiling", "running", "stopping")
    pid = os.getpid() if live else 0
    return RunState(
        phase=phase,
        host=host_name(),
        boot_id=boot_id(),
        pid=pid,
        pid_started=start_time(pid) if live else 0.0,
        supervisor_pid=pid,
        supervisor_started=start_time(pid) if live else 0.0,
        started_at=created + 1,
        heartbeat_at=NOW,
        ended_at=0.0 if live else created + 3 + 0.2 * steps,
        step=steps,
        total=total,
        exit_code=None if live else 0 if phase == "finished" else 1,
        reason=reason,
    )


def _write_metrics(files: RunFiles, steps: int, seed: int, nonfinite_at: int | None) -> None:
    noise = random.Random(seed)
    lines = []
    for step in range(1, steps + 1):
        loss = 3.9 * math.exp(-step / 60) + 0.35 + 0.12 * noise.random()
        fields = {
            "step": step,
            "time": round(3.0 + 0.2 * step, 3),
            "attempt": 1,
            "loss": "NaN" if step == nonfinite_at else round(loss, 4),
            "lr": round(3e-3 * math.cos(math.pi * step / 2 / max(steps, 1)), 8),
            "grad_norm": round(1.4 * math.exp(-step / 90) + 0.1 * noise.random(), 4),
            "step_ms": round(181 + 14 * noise.random(), 2),
            "data_ms": 0.4,
            "transfer_ms": 0.2,
            "compute_ms": 180.1,
            "tokens": 2880 * step,
            "tokens_per_s": round(15_800 + 200 * noise.random(), 1),
            "device_bytes_in_use": int(3.1 * GIB),
            "device_peak_bytes": int(3.3 * GIB),
        }
        lines.append(json.dumps(fields))
        if step % STEPS_PER_EPOCH == 0:
            evaluation = {
                "step": step,
                "time": fields["time"],
                "attempt": 1,
                "val_loss": round(loss + 0.1, 4),
            }
            lines.append(json.dumps(evaluation))
    files.metrics.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _write_events(files: RunFiles, steps: int, total: int, phase: Phase, reason: str) -> None:
    events: list[dict[str, object]] = [
        {"kind": "backend", "platform": "cuda", "device": "NVIDIA H200", "kernel": "cudnn",
         "precision": "bfloat16", "jax": "0.10.2", "devices": 1},
        {"kind": "data", "examples": 360, "train": 320, "validation": 36, "tokens": 28_800,
         "skipped": [17, 201], "rows": 4, "length": 1024, "target_tokens": 9_000, "total": total},
        {"kind": "phase", "phase": "compiling"},
        {"kind": "compiled", "seconds": 2.4},
    ]  # fmt: skip
    if steps:
        events.append({"kind": "phase", "phase": "running"})
    if phase in ("finished", "stopped", "failed"):
        events.append({"kind": "artifact", "path": "artifacts/adapter.safetensors"})
        events.append({"kind": "end", "outcome": phase, "reason": reason})
    lines = (
        json.dumps({"time": 1.0 + at, "attempt": 1, "at": NOW, **event}) for at, event in enumerate(events)
    )
    files.events.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _write_system(files: RunFiles, steps: int) -> None:
    import msgspec

    sample = SystemSample(
        time=2.0 * steps,
        attempt=1,
        host_used_bytes=31 * GIB,
        host_total_bytes=128 * GIB,
        process_bytes=2 * GIB,
        process_cpu_percent=104.0,
        devices=(DeviceSample("cuda:0", 61 * GIB, 139 * GIB, 87.0, 54.0, 412.0),),
    )
    files.system.write_bytes(msgspec.json.encode(sample) + b"\n")


def _log_text(steps: int) -> str:
    lines = [
        "needle: backend cuda, NVIDIA H200, as planned",
        "needle: 360 examples, 2 left out as too long (lines 17, 201)",
        "needle: compiled in 2.4 s",
    ]
    lines += [
        f"needle: epoch {step // STEPS_PER_EPOCH} done" for step in range(20, steps + 1, STEPS_PER_EPOCH)
    ]
    return "".join(line + "\n" for line in lines)
