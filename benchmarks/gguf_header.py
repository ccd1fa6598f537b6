"""How long the header of a GGUF file takes, and how much memory.

    python benchmarks/gguf_header.py [FILE…]

Without files: those of the shared corpus, and a made one with 150 thousand tokens and as many merges, which
`gguf.GGUFReader` reads too. Every measurement runs in a process of its own. Printed for each file: the median time of
one `scanner.extract.extract` in milliseconds (of a file that the system has in its cache), the peak of the whole
process, and how much of that peak came after the imports, in megabytes. The target: 40 ms and 60 MB for the made file.
"""

# ruff: noqa: T201

from __future__ import annotations

import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("CAPSCAN_SHARED") or ROOT.parent / "shared")
ENTRIES = 150_000
REPEATS = 15


def main() -> None:
    print(f"{'file':34} {'reader':16} {'ms':>8} {'peak MB':>8} {'of it reading':>14}")
    given = [Path(name) for name in sys.argv[1:]]
    if given:
        for path in given:
            report(path, "capscan")
        return
    for path in sorted((SHARED / "corpus" / "gguf").glob("*.gguf")):
        report(path, "capscan")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made-150k-150k.gguf")
        write_model(made)
        report(made, "capscan")
        report(made, "gguf.GGUFReader")


def write_model(path: Path) -> None:
    """150 thousand tokens of 1 to 12 bytes with their types, as many merges, BOS, EOS and a template."""
    tokens = [f"{index:x}"[::-1] * (1 + index % 2) for index in range(ENTRIES)]
    merges = [f"{index:x} {index * 7:x}" for index in range(ENTRIES)]
    types = struct.pack("<IIQ", 9, 5, ENTRIES) + struct.pack(f"<{ENTRIES}i", *([1] * ENTRIES))
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("tokenizer.ggml.tokens") + texts(tokens),
        text("tokenizer.ggml.token_type") + types,
        text("tokenizer.ggml.merges") + texts(merges),
        text("tokenizer.ggml.bos_token_id") + struct.pack("<II", 4, ENTRIES - 2),
        text("tokenizer.ggml.eos_token_id") + struct.pack("<II", 4, ENTRIES - 1),
        text("tokenizer.chat_template") + struct.pack("<I", 8) + text("{{ messages }}" * 300),
    ]
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs))


def texts(values: list[str]) -> bytes:
    return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def report(path: Path, reader: str) -> None:
    command = [sys.executable, __file__, "--measure", reader, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    milliseconds, peak, reading = map(float, done.stdout.split())
    print(f"{path.name:34} {reader:16} {milliseconds:8.1f} {peak:8.1f} {reading:14.1f}")


def measure(reader: str, path: str) -> None:
    """In a fresh process: print median milliseconds, peak megabytes, megabytes above the imports."""
    if reader == "capscan":
        from scanner.extract import extract
        from scanner.results import ModelFile, SourceKind

        model = ModelFile(path, path, SourceKind.GGUF, 0, 0, "")
        before = peak_megabytes()
        times = [timed(lambda: extract(model)) for _ in range(REPEATS)]
    else:
        from gguf import GGUFReader

        before = peak_megabytes()
        times = [timed(lambda: GGUFReader(path))]
    print(statistics.median(times) * 1000, peak_megabytes(), peak_megabytes() - before)


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def peak_megabytes() -> float:
    # Not getrusage: its peak starts with that of the parent process.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], sys.argv[3])
    else:
        main()
