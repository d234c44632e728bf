"""The source text of a fold by a region, from its loops. Sizes are not in it: they are read from the table.

A kernel is `kernel(lo, hi, block, scratch, table)`: the units to run over. The table holds: the length and the step of
the innermost loop, the number of parts and of chunks, pairs of length and step of the result loops and of the place
loops, then the addresses of N arrays, N inits, N arrays to write, and N arrays to put the parts together in.

Side by side, a unit is a chunk of the innermost results. Else it is one part of one result, and with a negative `block`
the parts of each result are put together. Elements are combined in groups, never out of their order.
"""

from __future__ import annotations

from gspmd.ir.graph import Region
from gspmd.ops.folding import Fold
from gspmd.runtime.fusion.region_source import RegionWriter

# Of a run of elements so many at a time are folded by halving, in scratch memory, if there are so many at all.
RUN = 1 << 10
_LEAST_BY_HALVES = 32
FIXED = 4  # numbers at the head of a table


def fold_source(fold: Fold, region: Region) -> str:
    """The source text of the kernel of a fold by a region."""
    writer = _Writer(fold, region)
    writer.step()
    if fold.side_by_side:
        writer.beside()
    else:
        writer.run()
        writer.one_by_one()
    return writer.text()


class _Writer(RegionWriter):
    def __init__(self, fold: Fold, region: Region) -> None:
        super().__init__(fold.steps, region)
        self.fold = fold

    def element(self, i: int) -> str:
        """The element of an array at place j of the innermost loop."""
        return f"e{i}[j]" if self.fold.inner[1] == 1 else f"e{i}[j * step]"

    def head(self) -> None:
        """The kernel's first lines: what the table says."""
        fold = self.fold
        at = FIXED
        loops = (("g", fold.results), ("k", fold.places))
        self.kernel()
        self.put(f"t = vector(table, {at + 2 * (len(fold.results) + len(fold.places)) + 4 * self.count}, np.int64)")
        self.put("n, step, parts, chunks = t[0], t[1], t[2], t[3]")
        for name, which in loops:
            for d in range(len(which)):
                self.put(f"{name}{d}n, {name}{d}s = t[{at}], t[{at + 1}]")
                at += 2
        for k, name in enumerate("xiyz"):
            for i in range(self.count):
                self.put(f"{name}{i} = t[{at + k * self.count + i}]")
        for i in range(self.count):
            self.put(f"v{i} = vector(i{i}, 1, {self.dtypes[i]})[0]")

    def start_of(self, number: str) -> None:
        """`at`, where the elements of a result begin, from the result's number."""
        rest, terms = number, list[str]()
        for d in range(len(self.fold.results) - 1, -1, -1):
            self.put(f"r{d} = {rest} % g{d}n" if d else f"r0 = {rest}")
            terms.append(f"r{d} * g{d}s")
            if d:
                self.put(f"q{d} = {rest} // g{d}n")
                rest = f"q{d}"
        self.put(f"at = {' + '.join(terms) or '0'}")

    def place_loops(self, first: str) -> str:
        """Open the loops over a window's places, the first over a range; returns where they are."""
        where = "at"
        for d in range(len(self.fold.places)):
            self.block(f"for k{d} in range({first if d == 0 else f'k{d}n'}):")
            where += f" + k{d} * k{d}s"
        return where

    # -- one result after the other -------------------------------------------------------------------------------

    def run(self) -> None:
        """The function that folds a run of elements, from addresses: long ones by halving, which is vector code."""
        self.lines.append('\n\n@njit(error_model="numpy")')
        self.block(f"def run({', '.join(f'x{i}' for i in range(self.count))}, n, step, scratch):")
        for i in range(self.count):
            self.put(f"e{i} = vector(x{i}, (n - 1) * step + 1, {self.dtypes[i]})")
        self.put(f"{self.tuple('a')} = ({self.each(lambda i: f'e{i}[0]')},)")
        self.block(f"if n < {_LEAST_BY_HALVES}:")
        self.block("for j in range(1, n):", [self.accumulate("a", self.element)])
        self.put(f"return {self.tuple('a')}")
        self.depth -= 1
        self.block(f"for lo in range(0, n, {RUN}):")
        for i in range(self.count):
            size, dtype = self.sizes[i], self.dtypes[i]
            self.put(f"e{i} = vector(x{i} + lo * step * {size}, (n - lo - 1) * step + 1, {dtype})")
            self.put(f"u{i} = vector(scratch + {2 * i * 8 * RUN}, {RUN}, {dtype})")
            self.put(f"w{i} = vector(scratch + {(2 * i + 1) * 8 * RUN}, {RUN}, {dtype})")
        self.put(f"m = min({RUN}, n - lo)")
        self.halve("e", "u", "" if self.fold.inner[1] == 1 else " * step")
        self.block("while m > 1:")
        self.halve("u", "w", "")
        for i in range(self.count):
            self.put(f"u{i}, w{i} = w{i}, u{i}")
        self.depth -= 1
        self.block("if lo:", [self.accumulate("a", lambda i: f"u{i}[0]")])
        self.block("else:", [f"{self.tuple('a')} = ({self.each(lambda i: f'u{i}[0]')},)"])
        self.depth -= 1
        self.put(f"return {self.tuple('a')}")
        self.depth = 0

    def halve(self, source: str, target: str, step: str) -> None:
        """Combine neighbours among m elements; the last one may have none."""
        outs = f"({self.each(lambda i: f'{target}{i}[j]')},)"

        def neighbour(i: int, k: int) -> str:
            return f"{source}{i}[(2 * j + {k}){step}]"

        self.block(
            "for j in range(m // 2):",
            [f"{outs} = {self.combined(lambda i: neighbour(i, 0), lambda i: neighbour(i, 1))}"],
        )
        self.block("if m % 2:", [f"{target}{i}[m // 2] = {source}{i}[(m - 1){step}]" for i in range(self.count)])
        self.put("m -= m // 2")

    def one_by_one(self) -> None:
        """The kernel in which a unit is one part of one result."""
        self.head()
        self.finish()
        self.block("for unit in range(lo, hi):")
        self.put("part = unit % parts")
        self.put("number = unit // parts")
        self.start_of("number")
        whole = "k0n" if self.fold.places else "n"
        self.put(f"first, last = part * {whole} // parts, (part + 1) * {whole} // parts")
        self.put(f"{self.tuple('a')} = {self.tuple('v')}")
        self.put("started = part == 0")
        depth = self.depth
        where, length = self.place_loops("first, last"), "n"
        if not self.fold.places:
            where, length = "at + first * step", "last - first"
        self.put(f"where = {where}")
        given = self.each(lambda i: f"x{i} + where * {self.sizes[i]}")
        self.put(f"{self.tuple('b')} = run({given}, {length}, step, scratch)")
        self.block("if started:", [self.accumulate("a", lambda i: f"b{i}")])
        self.block("else:", [f"{self.tuple('a')} = {self.tuple('b')}", "started = True"])
        self.depth = depth
        for i in range(self.count):
            self.put(f"vector(y{i} + unit * {self.sizes[i]}, 1, {self.dtypes[i]})[0] = a{i}")

    def finish(self) -> None:
        """Put the parts of each result together."""
        self.block("if block < 0:")
        self.block("for r in range(lo, hi):")
        for i in range(self.count):
            self.put(f"e{i} = vector(y{i} + r * parts * {self.sizes[i]}, parts, {self.dtypes[i]})")
        self.put(f"{self.tuple('a')} = ({self.each(lambda i: f'e{i}[0]')},)")
        self.block("for j in range(1, parts):", [self.accumulate("a", lambda i: f"e{i}[j]")])
        for i in range(self.count):
            self.put(f"vector(z{i} + r * {self.sizes[i]}, 1, {self.dtypes[i]})[0] = a{i}")
        self.depth -= 1
        self.put("return")
        self.depth -= 1

    # -- results side by side -------------------------------------------------------------------------------------

    def beside(self) -> None:
        """The kernel in which a unit is a chunk of results that lie beside one another, and are held where they go."""
        self.head()
        self.block("for unit in range(lo, hi):")
        self.put("chunk = unit % chunks")
        self.put("number = unit // chunks")
        self.start_of("number")
        self.put("first, last = chunk * n // chunks, (chunk + 1) * n // chunks")
        self.put("at += first * step")
        self.put("m = last - first")
        for i in range(self.count):
            size = self.sizes[i]
            self.put(f"o{i} = vector(y{i} + (number * n + first) * {size}, m, {self.dtypes[i]})")
        self.put("started = False")
        where = self.place_loops("k0n")
        self.put(f"where = {where}")
        for i in range(self.count):
            self.put(f"e{i} = vector(x{i} + where * {self.sizes[i]}, (m - 1) * step + 1, {self.dtypes[i]})")
        outs = f"({self.each(lambda i: f'o{i}[j]')},)"
        self.block("if started:")
        self.block("for j in range(m):", [f"{outs} = {self.combined(lambda i: f'o{i}[j]', self.element)}"])
        self.depth -= 1
        self.block("else:")
        self.block("for j in range(m):", [f"{outs} = {self.combined(lambda i: f'v{i}', self.element)}"])
        self.put("started = True")
        self.depth = 0
