"""`needle build`: a checkpoint and an adapter become the archive that ships."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from needle.commands.models import missing_package
from needle.commands.printing import print_json
from needle.config import FinetuneSettings
from needle.data.locate import locate_base, locate_tokenizer
from needle.errors import InputError
from needle.units import bytes_text

if TYPE_CHECKING:
    from needle.model.export import Built, Row, Sources


def run(arguments: argparse.Namespace) -> int:
    """Check, build in this process, write, and say what was built. Returns the exit status."""
    settings = FinetuneSettings(checkpoint=arguments.checkpoint, tokenizer=arguments.tokenizer or "")
    checkpoint, base_name, _ = locate_base(settings)
    out = _free_output(Path(arguments.out).expanduser(), overwrite=arguments.overwrite)
    try:
        from needle.model.archive import write_archive
        from needle.model.export import Sources, build_archive

        adapter = Path(arguments.lora).expanduser() if arguments.lora else None
        tokenizer = locate_tokenizer(settings, checkpoint)
        bits_map = arguments.bits_map or ""
        sources = Sources(checkpoint, tokenizer, adapter, arguments.bits, bits_map, base_name)
        _refuse_own_source(out, sources)
        built = build_archive(sources)
    except ModuleNotFoundError as error:
        raise missing_package(error, "building an archive") from None
    write_archive(out, built.archive.content)
    for warning in built.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    _report(built, out, sources, as_json=arguments.json)
    return 0


def _free_output(out: Path, *, overwrite: bool) -> Path:
    """Known before the work: a file that may be written. Raises InputError."""
    if out.is_dir():
        raise InputError("is a directory", where=str(out), remedy="give --out a file, such as model.cact")
    if not out.parent.is_dir():
        raise InputError("its directory does not exist", where=str(out), remedy=f"mkdir -p {out.parent}")
    if out.exists() and not overwrite:
        raise InputError("already exists", where=str(out), remedy="choose another --out, or --overwrite")
    return out


def _refuse_own_source(out: Path, sources: Sources) -> None:
    """Overwriting is for archives: what one is built from cannot be made again from it."""
    for source in (sources.checkpoint, sources.tokenizer, sources.adapter):
        if source and out.exists() and source.exists() and out.samefile(source):
            raise InputError(
                "is what the archive is built from", where=str(out), remedy="choose another --out"
            )


def _report(built: Built, out: Path, sources: Sources, *, as_json: bool) -> None:
    from needle.model.export import summary

    rows = summary(built.archive)
    if as_json:
        print_json(_document(built, rows, out, sources))
        return
    print("\n".join(_table(rows)))
    print(f"bits        {built.numerics.bit_map.words} — {built.numerics.reason}")
    print(f"kv window   {built.kv_window} positions")
    print(f"archive     {out} — {bytes_text(len(built.archive.content))}")


def _document(built: Built, rows: Sequence[Row], out: Path, sources: Sources) -> dict[str, object]:
    return {
        "archive": str(out),
        "bytes": len(built.archive.content),
        "checkpoint": str(sources.checkpoint),
        "adapter": str(sources.adapter) if sources.adapter else None,
        "tokenizer": str(sources.tokenizer),
        "bits_map": str(built.numerics.bit_map),
        "bits_reason": built.numerics.reason,
        "kv_window": built.kv_window,
        "rows": [row._asdict() for row in rows],
        "warnings": list(built.warnings),
    }


def _table(rows: Sequence[Row]) -> list[str]:
    """Every kind of tensor with its bits and bytes, and the whole."""
    parameters, size_bytes = sum(row.parameters for row in rows), sum(row.size_bytes for row in rows)
    lines = [_line("tensors", "count", "bits", "weights", "bytes")]
    for row in rows:
        bits = "" if row.bits is None else f"{row.bits:g}"
        weights = f"{row.parameters:,}" if row.parameters else ""
        lines.append(_line(row.name, f"{row.tensors or ''}", bits, weights, f"{row.size_bytes:,}"))
    average = f"{8 * size_bytes / parameters:.2f}"
    count = f"{sum(row.tensors for row in rows)}"
    return [*lines, _line("total", count, average, f"{parameters:,}", f"{size_bytes:,}")]


def _line(name: str, count: str, bits: str, weights: str, size: str) -> str:
    return f"{name:<21} {count:>5} {bits:>5} {weights:>12} {size:>12}"
