"""What a run really holds: the bytes of all arrays that are alive, after each op."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gspmd.ir.graph import Node
from gspmd.runtime import walker


class Meter:
    """Counts the arrays that own memory and are alive, among those that ops were given or made, on all devices."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.alive: dict[int, int] = {}
        self.most = 0
        original = walker._runner

        def runner(node: Node) -> Any:
            run = original(node)

            def measured(machine: Any, node: Node, args: Sequence[Any]) -> Any:
                outs = run(machine, node, args)
                for shards in (*args, *outs):
                    self.see(shards)
                del shards
                self.most = max(self.most, sum(self.alive.values()))
                return outs

            return measured

        monkeypatch.setattr(walker, "_runner", runner)

    def see(self, shards: Sequence[Any]) -> None:
        """Count arrays, or those in whose memory they are, until they die."""
        for x in shards:
            while isinstance(x.base, np.ndarray):
                x = x.base
            if id(x) not in self.alive:
                self.alive[id(x)] = x.nbytes
                weakref.finalize(x, self.alive.pop, id(x))
