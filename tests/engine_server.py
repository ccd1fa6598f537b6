"""A real llama-server on loopback, for the tests of `capscan verify --server`.

`python -m tests.engine_server DEFAULT [TOOL_USE]` (files) prints the server's address and serves until its standard
input ends.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scanner import oracle


@contextmanager
def running(default: Path, tool_use: Path | None = None) -> Iterator[str]:
    """The address of a server that runs these templates."""
    command = [sys.executable, "-m", "tests.engine_server", str(default), *([str(tool_use)] if tool_use else [])]
    root = Path(__file__).resolve().parent.parent
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=root) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        assert address.startswith("http"), "the server did not start"
        try:
            yield address
        finally:
            process.kill()


def main() -> None:
    """Serve."""
    import xllamacpp

    default, *others = [Path(name).read_bytes() for name in sys.argv[1:]]
    named = tuple(("tool_use", source) for source in others)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.gguf")
        oracle.write_model(model, oracle.Question(default, named=named))
        server = xllamacpp.Server(oracle.server_parameters(xllamacpp, str(model)))
        sys.stdout.write(f"{server.listening_address}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
