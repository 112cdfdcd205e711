"""Which files a run means: one place resolves what settings name, for the preflight and for the trainer."""

from __future__ import annotations

from pathlib import Path

from needle.config import FinetuneSettings
from needle.data.sample import sample_base, sample_directory
from needle.errors import InputError

SAMPLE = "sample"
ADAPTER_SUFFIXES = (".safetensors", ".pkl")
BASE_NAMES = ("needle2.safetensors", "needle2.pkl")


def locate_data(settings: FinetuneSettings) -> Path:
    """The examples file; `sample` is the embedded one unless a file has that name."""
    if not settings.data:
        raise InputError(
            "no data file yet: give a JSONL file, or 'sample' for the embedded one", field="data"
        )
    path = Path(settings.data).expanduser()
    return sample_directory() / "train.jsonl" if settings.data == SAMPLE and not path.exists() else path


def locate_base(settings: FinetuneSettings) -> tuple[Path, str, str]:
    """(file, what to call it, why it). Raises InputError when the named file does not exist."""
    if settings.checkpoint == SAMPLE:
        return sample_base(), SAMPLE, "the small base that comes with needle was asked for"
    if settings.checkpoint:
        return _existing(
            settings.checkpoint, "a base model (.safetensors or .pkl), or 'sample'", "checkpoint"
        )
    folder = Path(settings.checkpoint_dir).expanduser()
    for name in BASE_NAMES:
        if (folder / name).exists():
            return folder / name, f"{settings.checkpoint_dir}/{name}", "found in the checkpoint directory"
    missing = f"no {' or '.join(BASE_NAMES)} in {settings.checkpoint_dir}/"
    return sample_base(), SAMPLE, f"{missing}: the small base that comes with needle is used"


def locate_tokenizer(settings: FinetuneSettings, base: Path) -> Path:
    """The SentencePiece model: the one named, else `tokenizer.model` beside the base."""
    if settings.tokenizer:
        return _existing(settings.tokenizer, "a SentencePiece model", "tokenizer")[0]
    for beside in (base.parent / "tokenizer.model", base.parent.parent / "tokenizer" / "tokenizer.model"):
        if beside.is_file():
            return beside
    raise InputError(
        f"there is no tokenizer.model beside {base.name}; name one with --tokenizer", field="tokenizer"
    )


def _existing(text: str, wanted: str, field: str) -> tuple[Path, str, str]:
    path = Path(text).expanduser()
    if not path.exists():
        raise InputError(f"{text}: no such file; give {wanted}", field=field)
    if path.is_dir():
        raise InputError(f"{text}: is a directory; give {wanted}", field=field)
    return path, text, "asked for"
