"""Plans, runs and machines in lines of text."""

from __future__ import annotations

import shlex

from needle.runs.record import Decision, MemoryBill, Plan, Variable
from needle.units import bytes_text


def plan_lines(plan: Plan) -> list[str]:
    """A whole plan: every choice with its reason, the bill, the environment and the command."""
    lines = [
        decision_line(name, decision)
        for name, decision in (
            ("data", plan.data),
            ("base", plan.base),
            ("python", plan.python),
            ("backend", plan.backend),
            ("devices", plan.devices),
            ("attention", plan.kernel),
            ("precision", plan.precision),
            ("rounding", plan.rounding),
            ("placement", plan.placement),
        )
        if decision is not None
    ]
    lines += [f"  not {name}: {why}" for name, why in plan.kernel.rejected.items()]
    lines.append(f"steps       {plan.total_steps}")
    if plan.memory:
        lines += memory_lines(plan.memory)
    lines.append("environment")
    lines += [f"  {variable_text(variable)}" for variable in plan.environment]
    lines += [
        "command",
        f"  {shlex.join(plan.command)}",
        "same run by hand",
        f"  {shlex.join(plan.command_line)}",
    ]
    return lines


def decision_line(name: str, decision: Decision) -> str:
    """`backend     cpu — the only platform every JAX has`."""
    return f"{name:<11} {decision.choice} — {decision.reason}"


def memory_lines(bill: MemoryBill) -> list[str]:
    """The bill by part, and the verdict; an estimate says so."""
    parts = [f"  {part.name:<22} {bytes_text(part.size_bytes):>10}" for part in bill.parts]
    return [f"memory on {bill.where}{' (estimate)' if bill.estimated else ''}", *parts, f"  {verdict(bill)}"]


def verdict(bill: MemoryBill) -> str:
    """`needs 3.1 GiB; 0.5 GiB of 24.0 GiB in use by others: fits`."""
    needs = f"needs {bytes_text(bill.total_bytes)}"
    if bill.fits is None:
        return f"{needs}; the limit is unknown"
    over = bill.total_bytes + bill.used_by_others_bytes - bill.limit_bytes
    used = f"{bytes_text(bill.used_by_others_bytes)} of {bytes_text(bill.limit_bytes)} already in use"
    return f"{needs}; {used}: {'fits' if bill.fits else f'{bytes_text(over)} too much'}"


def variable_text(variable: Variable) -> str:
    """`JAX_PLATFORMS=cpu   one backend, …`; a removed one reads `unset NAME`."""
    setting = f"unset {variable.name}" if variable.value is None else f"{variable.name}={variable.value}"
    return f"{setting:<32} {variable.reason}"
