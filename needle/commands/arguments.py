"""Command lines from the definition of settings: one flag a field, no default said twice."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import NoReturn

from needle.config import Field, RunSettings, fields_of
from needle.errors import InputError


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are InputError, with the nearest flag as the remedy."""

    def error(self, message: str) -> NoReturn:
        raise InputError(message, remedy=f"see: {self.prog} --help")

    def parse_all(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse everything; an unknown flag is answered with the one that was probably meant."""
        known, unknown = self.parse_known_args(arguments)
        if unknown:
            self._refuse(unknown[0], getattr(known, "parser", self))
        return known

    def _refuse(self, unknown: str, parser: Parser) -> NoReturn:
        flags = [flag for action in parser._actions for flag in action.option_strings]
        close = difflib.get_close_matches(unknown.split("=")[0], flags, n=1)
        remedy = f"did you mean {close[0]}?" if close else f"see: {parser.prog} --help"
        raise InputError(f"unknown argument {unknown}", remedy=remedy)


def add_settings(parser: argparse.ArgumentParser, task: type[RunSettings]) -> None:
    """One argument for each setting. Values stay text: `needle.config` converts and checks them."""
    for field in fields_of(task):
        if field.setting.positional:
            parser.add_argument(
                field.name,
                metavar=field.name.upper(),
                nargs="?",
                default=argparse.SUPPRESS,
                help=_help(field),
            )
        elif field.kind == "switch":
            parser.add_argument(
                field.flag,
                dest=field.name,
                action=argparse.BooleanOptionalAction,
                default=argparse.SUPPRESS,
                help=_help(field),
            )
        else:
            parser.add_argument(
                field.flag,
                dest=field.name,
                metavar="|".join(field.choices) or field.kind.upper(),
                default=argparse.SUPPRESS,
                help=_help(field),
            )


def add_model(parser: argparse.ArgumentParser) -> None:
    """The flags that name a model and where to compute."""
    parser.add_argument(
        "--checkpoint", metavar="FILE", default="",
        help="base model file, or 'sample' (default: needle2 in checkpoints/, else the embedded sample)",
    )  # fmt: skip
    parser.add_argument("--lora", metavar="FILE", help="adapter to merge, .safetensors or .pkl")
    parser.add_argument(
        "--tokenizer", metavar="FILE", help="SentencePiece model (default: tokenizer.model beside the base)"
    )
    parser.add_argument(
        "--bits", type=int, choices=(2, 4), help="bits of every weight (default: as it ships)"
    )
    parser.add_argument("--bits-map", metavar="MAP", help="bits by name, as `needle build` takes them")
    parser.add_argument(
        "--backend", metavar="NAME", default="auto",
        help="the one JAX platform to use: cpu, cuda, rocm, tpu, METAL (default: JAX's own choice)",
    )  # fmt: skip


def given_settings(namespace: argparse.Namespace, task: type[RunSettings]) -> dict[str, object]:
    """The settings that were given, by name."""
    values = vars(namespace)
    return {field.name: values[field.name] for field in fields_of(task) if field.name in values}


def print_error(error: Exception) -> None:
    """The one place that prints an error of a command."""
    print(f"needle: {error}", file=sys.stderr)


def _help(field: Field) -> str:
    text = field.setting.help.replace("%", "%%")
    if field.setting.positional or field.default in ("", False):
        return text
    return f"{text} (default {field.default})"
