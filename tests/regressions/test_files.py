"""Where the command line writes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from gspmd.cli.files import check_writable, write_text


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """Moving the finished file there would replace it; with /dev/null for a pipe, for the whole machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    check_writable(str(pipe))
    write_text(str(pipe), lambda: "text")
    reader.join(timeout=10)
    assert read == [b"text"]
    assert pipe.is_fifo()
