"""Reads the command line, runs one command, and turns every mistake of the user's into one message and an exit code.

Exit 0: done. 1: the program failed, or a check did not hold. 2: bad usage or input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from gspmd.cli import commands
from gspmd.cli.run import run_command
from gspmd.ir.errors import ExecutionError, GspmdError
from gspmd.ir.graph import STAGES
from gspmd.runtime.abort import fail, install_abort_hook
from gspmd.runtime.environment import world

FAILED, USAGE = 1, 2

_FILE = "a .gspmd text, or model.py:function"


class _Parser(argparse.ArgumentParser):
    """An argument parser that points to the help instead of printing it."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"gspmd: {message}\n  fix: see `{self.prog} --help`\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    install_abort_hook()
    arguments = _parse(list(sys.argv[1:] if argv is None else argv))
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except GspmdError as error:
        code = FAILED if isinstance(error, ExecutionError) else USAGE
        return _failed(f"gspmd: {error}", code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return _failed("gspmd: interrupted", 130)


def _parse(argv: list[str]) -> argparse.Namespace:
    """The command's options; what they do not know, and all behind `--`, is a script's own (`script_arguments`)."""
    cut = argv.index("--") if "--" in argv else len(argv)
    parser = _parser()
    arguments, unknown = parser.parse_known_args(argv[:cut])
    own = unknown + argv[cut + 1 :]
    if own and not getattr(arguments, "file", "").endswith(".py"):
        parser.error(f"unrecognized arguments: {' '.join(own)}")
    arguments.script_arguments = own
    return arguments


def _failed(text: str, code: int) -> int:
    """Tell what went wrong; a rank of a job takes the others down with it."""
    if world().size > 1:
        fail(f"rank {world().rank} of {world().size}: {text}", code)
    print(text, file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gspmd",
        allow_abbrev=False,
        description="Compile tensor programs for a mesh of devices and run them over MPI.",
    )

    def tell(arguments: argparse.Namespace) -> int:
        """A bare `gspmd` says what there is."""
        parser.print_help()
        return USAGE

    parser.set_defaults(run=tell)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str, file: str = _FILE) -> _Parser:
        added = subparsers.add_parser(name, help=text, description=text, allow_abbrev=False)
        added.set_defaults(run=run)
        if file:
            added.add_argument("file", metavar="FILE", help=file)
            added.add_argument("--mesh", help="the mesh, as data=2,model=4")
        return added

    _run_options(command("run", run_command, "run a program or a script", f"{_FILE}, or a script train.py"))
    compile_ = command("compile", commands.compile_command, "compile a program to the text that devices run")
    compile_.add_argument("-o", "--output", required=True, help="where to write the scheduled program")
    opt = command("opt", commands.opt_command, "print a program at a stage")
    opt.add_argument("--until", default=STAGES[-1], metavar="STAGE", help=f"one of {', '.join(STAGES)}")
    uses = command("collectives", commands.collectives_command, "list the collectives that a program issues")
    uses.add_argument("--json", action="store_true", help="as JSON")
    explain = command("explain", commands.explain_command, "tell why a value is sharded as it is")
    explain.add_argument("value", metavar="VALUE", help="a value of the propagated stage, such as %%12")
    command("info", commands.info_command, "tell what this machine offers: MPI, ranks, threads, caches", "")
    return parser


def _run_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("--ranks", type=int, metavar="N", help="start N MPI ranks (default: all devices in this process)")
    run.add_argument("--inputs", metavar="IN.npz", help="arrays by input name, or in order")
    run.add_argument("--random", type=int, metavar="SEED", help="random inputs")
    run.add_argument("--outputs", metavar="OUT.npz", help="where to write the results")
    run.add_argument("--check", action="store_true", help="compare with one device")
