"""The commands that compile and tell: compile, opt, collectives, explain, cost."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from gspmd.cli.files import write_text
from gspmd.cli.sources import annotations_of, compiled_of, module_of, stages_of
from gspmd.cli.terminal import progress
from gspmd.driver.compiled import Compiled
from gspmd.inspect.collectives import wire_of
from gspmd.ir.errors import UsageError
from gspmd.ir.printer import print_program


def _compiled(arguments: argparse.Namespace) -> Compiled:
    compiled = compiled_of(arguments, module_of(arguments))
    progress("")
    return compiled


def compile_command(arguments: argparse.Namespace) -> int:
    """Write the last stage of a program, which `gspmd run` takes."""
    write_text(arguments.output, lambda: print_program(_compiled(arguments).stages.last))
    return 0


def opt_command(arguments: argparse.Namespace) -> int:
    """Print a program at a stage."""
    sys.stdout.write(print_program(stages_of(arguments).last))
    return 0


def collectives_command(arguments: argparse.Namespace) -> int:
    """List the collectives of the optimized stage by number, with bytes on the wire per device."""
    uses = _compiled(arguments).collectives()
    if arguments.json:
        print(json.dumps([{"number": i, **asdict(use)} for i, use in enumerate(uses)], indent=1))
        return 0
    width = len(f"#{len(uses)}")
    for i, use in enumerate(uses):
        print(f"{f'#{i}':{width}} {use}")
    print(f"wire bytes per device: {wire_of(uses):.0f}")
    return 0


def explain_command(arguments: argparse.Namespace) -> int:
    """Print where a value's sharding came from, why a collective is there, or what other annotations would change."""
    asked = [arguments.value is not None, arguments.collective is not None, bool(arguments.what_if)]
    if sum(asked) != 1:
        raise UsageError("explain takes one of VALUE, --collective N and --what-if VALUE=SHARDING")
    if arguments.stage is not None and not asked[0]:
        raise UsageError("--stage goes with VALUE")
    wanted = annotations_of("--what-if", arguments.what_if)
    compiled = _compiled(arguments)
    if asked[0]:
        print(compiled.explain(arguments.value, arguments.stage))
    elif asked[1]:
        print(compiled.explain_collective(arguments.collective))
    else:
        print(compiled.what_if(wanted))
    return 0


def cost_command(arguments: argparse.Namespace) -> int:
    """Print what a call costs a device: bytes on the wire, operations, memory."""
    compiled = _compiled(arguments)
    cost, memory = compiled.cost(), compiled.memory()
    if arguments.json:
        numbers = {"wire_bytes": cost.wire_bytes, "kinds": dict(cost.kinds), "collectives": cost.collectives}
        streamed = {"flops": cost.flops, "memory_bytes": cost.memory_bytes, "seconds": cost.seconds}
        print(json.dumps({**numbers, **streamed, "memory": asdict(memory)}, indent=1))
        return 0
    print(cost)
    print(memory)
    return 0
