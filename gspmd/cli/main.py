"""Reads the command line, runs one command, and turns every mistake into one message and an exit code.

Exit 0: done. 1: the program failed, or a check did not hold. 2: bad usage or input. A command's module is loaded when
it is called, so that help and mistakes cost nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from gspmd.cli.failure import FAILED, USAGE, failure
from gspmd.cli.terminal import progress
from gspmd.runtime.abort import fail, install_abort_hook
from gspmd.runtime.environment import world

_FILE = "a .gspmd text, an .mlir file, or model.py:function"
_SCRIPT = f"{_FILE}, or a script train.py"


class _Parser(argparse.ArgumentParser):
    """An argument parser that points to the help instead of printing it."""

    def error(self, message: str) -> NoReturn:
        _tell(f"gspmd: {message}\n  fix: see `{self.prog} --help`", USAGE)
        raise SystemExit(USAGE)


class _Version(argparse.Action):
    """Prints the version, which is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"gspmd {import_module('importlib.metadata').version('gspmd')}")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    install_abort_hook()
    arguments = _parse(list(sys.argv[1:] if argv is None else argv))
    try:
        return _command(arguments.run)(arguments)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return _tell("gspmd: interrupted", 130)
    except Exception as error:  # noqa: BLE001  user code may raise anything, and gets one message
        return _tell(*failure(error))


def _command(place: str) -> Callable[[argparse.Namespace], int]:
    """The function of a command from `module:function`."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"gspmd.cli.{module}"), name)


def _parse(argv: list[str]) -> argparse.Namespace:
    """The command's options; what `run` does not know, and all behind `--`, is a script's own (`script_arguments`)."""
    cut = argv.index("--") if "--" in argv else len(argv)
    parser = _parser()
    arguments, unknown = parser.parse_known_args(argv[:cut])
    own = unknown + argv[cut + 1 :]
    takes_own = arguments.run.startswith("run:") and arguments.file.endswith(".py")
    if own and not takes_own:
        parser.error(f"unrecognized arguments: {' '.join(own)}")
    if not arguments.run:
        parser.print_help()
        raise SystemExit(USAGE)
    arguments.script_arguments = own
    return arguments


def _tell(text: str, code: int) -> int:
    """Tell what went wrong; a rank of a job takes the others down with it."""
    progress("")
    if world().size > 1:
        fail(f"rank {world().rank} of {world().size}: {text}", code)
    sys.stderr.write(f"{text}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gspmd",
        allow_abbrev=False,
        description="Compile tensor programs for a mesh of devices and run them over MPI.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    parser.set_defaults(run="")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, place: str, text: str, file: str = _FILE) -> _Parser:
        added = subparsers.add_parser(name, help=text, description=text, allow_abbrev=False)
        added.set_defaults(run=place)
        if file:
            added.add_argument("file", metavar="FILE", help=file)
            added.add_argument("--mesh", help="the mesh, as data=2,model=4")
            added.add_argument(
                "--shard",
                metavar="VALUE=SHARDING",
                action="append",
                help="annotate a value so, as '%%w=[model,_]'; may be given several times",
            )
        return added

    _run_options(command("run", "run:run_command", "run a program or a script", _SCRIPT))
    compile_ = command("compile", "commands:compile_command", "compile a program to the text that devices run")
    import_ = command("import", "imports:import_command", "turn StableHLO into a .gspmd text", "an .mlir file")
    import_.add_argument("--function", default="", metavar="NAME", help="which function, if it has several")
    export = command("export", "exports:export_command", "turn a program at a stage into StableHLO")
    export.add_argument("--until", default="optimized", metavar="STAGE", help="the stage, optimized if left out")
    opt = command("opt", "commands:opt_command", "print a program at a stage")
    opt.add_argument("--until", default="scheduled", metavar="STAGE", help="the stage, scheduled if left out")
    uses = command("collectives", "commands:collectives_command", "list the collectives that a program issues")
    uses.add_argument("--json", action="store_true", help="as JSON")
    explain = command("explain", "commands:explain_command", "tell why it is split so, and what would change")
    _explain_options(explain)
    cost = command("cost", "commands:cost_command", "tell what a call costs a device, and its peak memory")
    cost.add_argument("--json", action="store_true", help="as JSON")
    search = command("bisect", "bisect:bisect_command", "find the first pass after which the numbers differ")
    search.add_argument("--inputs", metavar="IN.npz", help="arrays by input name, or in order if they have no names")
    search.add_argument("--random", type=int, metavar="SEED", help="random inputs (default: of seed 0)")
    for written in (compile_, import_, export):
        _output_option(written)
    for optimised in (compile_, export, opt, uses, explain, cost, search):
        _without_option(optimised)
    for limited in (compile_, uses, cost):
        _limit_options(limited)
    command("info", "info:info_command", "tell what this machine offers: MPI, ranks, threads, caches", "")
    return parser


def _explain_options(explain: argparse.ArgumentParser) -> None:
    explain.add_argument("value", metavar="VALUE", nargs="?", help="a value, such as %%12: why it is split so")
    explain.add_argument("--stage", metavar="STAGE", help="the stage at which VALUE has that name")
    explain.add_argument("--collective", metavar="N", help="a collective, by number or value: why it is there")
    explain.add_argument(
        "--what-if",
        metavar="VALUE=SHARDING",
        action="append",
        default=[],
        help="what annotating a value so would change, as '%%w=[model,_]'; may be given several times",
    )


def _output_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="where to write it, - for the terminal")


def _without_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--without", metavar="PASS,...", help="leave out optimisations: compose, merge, rings, mirrors, clean, fuse"
    )


def _limit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--forbid", metavar="KIND,...", help="fail if it issues such collectives, as all_gather")
    parser.add_argument("--max-wire-bytes", metavar="N", help="fail if a device sends more, as 64M")
    parser.add_argument("--max-memory", metavar="N", help="fail if a device needs more, as 2G")


def _run_options(run: argparse.ArgumentParser) -> None:
    _limit_options(run)
    _without_option(run)
    run.add_argument("--ranks", type=int, metavar="N", help="start N MPI ranks (default: all devices in this process)")
    run.add_argument("--inputs", metavar="IN.npz", help="arrays by input name, or in order if they have no names")
    run.add_argument("--random", type=int, metavar="SEED", help="random inputs")
    run.add_argument("--outputs", metavar="OUT.npz", help="where to write the results (default: show them)")
    run.add_argument("--check", action="store_true", help="compare with one device")
