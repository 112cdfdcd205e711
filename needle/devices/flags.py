"""XLA_FLAGS as XLA reads it (xla/tsl/util/command_line_flags, parse_flags_from_env.cc). Pure."""

from __future__ import annotations

import re

FLAGS = "XLA_FLAGS"
_TOKEN = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")


def split_flags(text: str) -> tuple[str, ...]:
    """`--a=1 --b="x y"` -> its flags; quotes keep a value with spaces together."""
    return tuple(_TOKEN.findall(text))


def is_file(text: str) -> bool:
    """Whether XLA would take this value for the name of a file that holds the flags."""
    return bool(text.strip()) and not text.lstrip().startswith("-")


def merged_flags(own: str, extra: str) -> str:
    """Both, each flag once: where both have it, the one of `extra` counts. No flag is changed or sorted."""
    names = {_name(flag) for flag in split_flags(extra)}
    kept = [flag for flag in split_flags(own) if _name(flag) not in names]
    return " ".join((*kept, *split_flags(extra)))


def overruled_flags(own: str, extra: str) -> tuple[str, ...]:
    """The flags of `own` that `extra` says differently."""
    said = split_flags(extra)
    names = {_name(flag) for flag in said}
    return tuple(flag for flag in split_flags(own) if _name(flag) in names and flag not in said)


def flags_problem(own: str, extra: str) -> str:
    """Why `extra` cannot be added; empty when it can, as far as its spelling goes."""
    wrong = [flag for flag in split_flags(extra) if not flag.startswith("--xla_")]
    if wrong:
        return f"an XLA flag begins with --xla_, not {wrong[0]}"
    if extra.strip() and is_file(own):
        return f"{FLAGS} names a file ({own.strip()}), and XLA reads either a file or flags"
    return ""


def _name(flag: str) -> str:
    return flag.partition("=")[0]
