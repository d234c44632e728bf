"""Programs as people write them in JAX, each laid out on devices in several ways."""

from __future__ import annotations

from tests.interop.programs import convolution, experts, manual, recurrent, spectral, systems, transformer
from tests.interop.programs.case import Layout, Program

PROGRAMS: tuple[Program, ...] = (
    transformer.PROGRAM,
    convolution.PROGRAM,
    *spectral.PROGRAMS,
    *recurrent.PROGRAMS,
    experts.PROGRAM,
    *systems.PROGRAMS,
    *manual.PROGRAMS,
)
CASES: dict[str, tuple[Program, Layout]] = {
    f"{program.name}/{layout.name}": (program, layout) for program in PROGRAMS for layout in program.layouts
}
