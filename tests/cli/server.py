"""A process that has loaded the command line and forks for every call: a real process each, without its start.

Reads lines of JSON, {"arguments": [...], "folder": ...}, and answers each with a line [code, stdout, stderr].
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from typing import BinaryIO

from gspmd.cli import commands, run
from gspmd.cli.main import main

_LIMIT = 50


def serve() -> None:
    assert commands and run  # loaded before the first fork
    for line in sys.stdin:
        request = json.loads(line)
        begin = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if not child:
                _call(request["arguments"], request["folder"], out, err)
            status = os.waitpid(child, 0)[1]
            texts = [_read(out), _read(err)]
        print(json.dumps([os.waitstatus_to_exitcode(status), *texts, time.monotonic() - begin]), flush=True)


def _call(arguments: list[str], folder: str, out: BinaryIO, err: BinaryIO) -> None:
    """What the console script does, in a child; does not return."""
    signal.alarm(_LIMIT)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.argv = ["gspmd", *arguments]
    code: object = 1
    try:
        code = main()
    except SystemExit as error:
        code = error.code
    except BaseException as error:  # noqa: BLE001  as the interpreter would
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _read(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()


if __name__ == "__main__":
    serve()
