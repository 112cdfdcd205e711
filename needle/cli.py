"""`needle …`: parses and hands over."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from needle.commands.arguments import Parser, add_model, add_settings, print_error
from needle.config import TASKS
from needle.errors import NeedleError


def main(arguments: Sequence[str] | None = None) -> None:
    """The `needle` program. Exits 0 when done, 1 when a run failed, 2 on bad input, 130 interrupted."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status; errors are printed here and nowhere else."""
    try:
        parsed = build_parser().parse_all(arguments)
        if "module" not in parsed:
            build_parser().print_help()
            return 0
        return int(importlib.import_module(parsed.module).run(parsed))
    except NeedleError as error:
        print_error(error)
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`needle runs list | head`): that is not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def build_parser() -> Parser:
    """Every command with its flags."""
    parser = Parser(prog="needle", description="Train with JAX and keep the whole story of every run.")
    parser.add_argument("--version", action="version", version=f"needle {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    _add_finetune(commands)
    _add_eval(commands)
    _add_run(commands)
    _add_build(commands)
    _add_devices(commands)
    _add_runs(commands)
    return parser


Commands = argparse._SubParsersAction


def _add_finetune(commands: Commands[Parser]) -> None:
    parser = _command(commands, "finetune", "fine-tune a Needle model on tool-calling examples", "finetune")
    add_settings(parser, TASKS["finetune"])
    parser.add_argument(
        "--sample",
        action="store_true",
        help="start from the settings of the embedded sample; other flags change them",
    )
    parser.add_argument(
        "--resume", metavar="RUN", help="go on with an ended run, by its name or 'latest', as it was started"
    )
    parser.add_argument("--detach", action="store_true", help="start the run, print its name and let go")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and start nothing")
    _add_common(parser)


def _add_eval(commands: Commands[Parser]) -> None:
    parser = _command(commands, "eval", "score a model on examples, as trained and as it ships", "eval")
    parser.add_argument(
        "data", metavar="DATA", help="JSONL file of examples, or 'sample' for the embedded held-out ones"
    )
    add_model(parser)
    parser.add_argument("--cact", metavar="FILE", help="archive to score beside the model it was built from")
    parser.add_argument(
        "--failures",
        metavar="FILE",
        help="where wrong answers are written (default: DATA.failures.jsonl)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a file at --failures that is no list of failures"
    )
    parser.add_argument(
        "--constrained", action="store_true", help="hold every answer to the tools its example declares"
    )
    _add_common(parser, runs=False)


def _add_run(commands: Commands[Parser]) -> None:
    parser = _command(
        commands, "run", "ask a model, as it ships: the prompt, the calls, the reasoning", "run"
    )
    parser.add_argument(
        "--query", metavar="TEXT", required=True, help="what to ask; '-' reads it from standard input"
    )
    parser.add_argument(
        "--tools", metavar="FILE", help="JSON list of tools to call, or 'sample' (default: none)"
    )
    parser.add_argument("--system", metavar="TEXT", default="", help="system text before the query")
    add_model(parser)
    parser.add_argument(
        "--float", action="store_true", help="the weights as trained, not rounded as they ship"
    )
    parser.add_argument(
        "--constrained",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="hold the answer to the tools' schemas (the default with --tools)",
    )
    parser.add_argument(
        "--temperature",
        type=float,
        default=0.0,
        help="0: the likeliest token; 1: drawn as the model says",
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn at a temperature")
    parser.add_argument("--limit", type=int, default=256, metavar="TOKENS", help="longest answer")
    _add_common(parser, runs=False)


def _add_build(commands: Commands[Parser]) -> None:
    parser = _command(commands, "build", "build the archive that ships: base and adapter, quantised", "build")
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="base model file, or 'sample'")
    parser.add_argument("--out", metavar="FILE", required=True, help="archive to write, such as model.cact")
    parser.add_argument("--lora", metavar="FILE", help="adapter to merge, .safetensors or .pkl")
    parser.add_argument(
        "--bits",
        type=int,
        choices=(2, 4),
        help="bits of every weight (default: what the adapter was trained for, else the base's, else 4)",
    )
    parser.add_argument(
        "--bits-map", metavar="MAP", help="bits by name: default=4,embedding=4,attn.q_proj=3,engram0=1.58"
    )
    parser.add_argument(
        "--tokenizer", metavar="FILE", help="SentencePiece model (default: tokenizer.model beside the base)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a file that already exists at --out"
    )
    _add_common(parser, runs=False)


def _add_devices(commands: Commands[Parser]) -> None:
    parser = _command(commands, "devices", "what this machine has and what works", "devices")
    parser.add_argument("--cached", action="store_true", help="answer from the last probe, at once")
    parser.add_argument("--all", action="store_true", help="probe every interpreter found, not only one")
    parser.add_argument("--python", metavar="PATH", default="", help="the interpreter to look at")
    parser.add_argument("--backend", metavar="NAME", default="", help="try this JAX platform too")
    _add_common(parser, runs=False)


def _add_runs(commands: Commands[Parser]) -> None:
    parent = commands.add_parser("runs", help="list, show, watch, stop, resume and remove runs")
    verbs = parent.add_subparsers(title="verbs", metavar="VERB", parser_class=Parser, required=True)
    _add_common(_command(verbs, "list", "every run found, newest first", "runs", verb="list"))
    for verb, help_text in (
        ("show", "one run: state, settings, reasons, last values"),
        ("watch", "follow a run with a progress bar until it ends"),
        ("stop", "ask a run to finish its step, save and stop"),
        ("resume", "start an ended run again from its last checkpoint"),
        ("rm", "delete the directory of an ended run"),
    ):
        parser = _command(verbs, verb, help_text, "runs", verb=verb)
        parser.add_argument("run", metavar="RUN", help="its id, the beginning of it, its path, or 'latest'")
        _add_common(parser, reports=verb in ("show", "watch"))
        if verb == "stop":
            parser.add_argument(
                "--now", action="store_true", help="do not wait for the step: TERM, then KILL"
            )


def _command(commands: Commands[Parser], name: str, help_text: str, module: str, **defaults: str) -> Parser:
    parser = commands.add_parser(name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".")
    parser.set_defaults(module=f"needle.commands.{module}", parser=parser, **defaults)
    return parser


def _add_common(parser: argparse.ArgumentParser, *, runs: bool = True, reports: bool = True) -> None:
    if reports:
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    if runs:
        parser.add_argument(
            "--runs", metavar="DIR", help="where runs live (default: NEEDLE_RUNS, else ./runs)"
        )


def _version() -> str:
    from needle.version import VERSION

    return VERSION


if __name__ == "__main__":
    main()
