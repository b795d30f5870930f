"""Damaged `.tflite` files through `snugly shrink`: each is an answer or an error, never a crash.

    python -m tests.accuracy.lite_fuzz [--count 10000] [--start 0] [--jobs 1] [--quantise 0]
                                       [MODEL.tflite…]

File number n is the same each time: a small model with bytes changed, cut short, with parts of
another, or random. Each is shrunk for a runtime and a budget that are drawn too, and followed at
other input sizes. The work is done in a process with a limit of memory; if it ends, hangs, or
raises anything but an error with a hint, that file is named and the exit code is 1. `--jobs N` does
it in N processes at a time. `--quantise N` lets every N-th file go through the quantiser and the
real interpreters as well.
"""

from __future__ import annotations

import argparse
import os
import random
import selectors
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from snugly import lite
from snugly.errors import SnuglyError
from snugly.lite.input_choices import sizes_of
from snugly.predicting.lite import LITE_RUNTIMES

MOST_MEMORY = 3 << 30  # bytes of addresses
LONGEST = 60.0  # seconds for one file
SEARCH = 0.3  # seconds of searching
QUANTISED_LONGEST = 300.0
STARTING = 30.0  # seconds that a process may take before its first file
SHARE = 200  # files of one process, where there are several at a time
PEAK, SLOWEST = "peak MiB", "slowest, ms"  # counted beside the outcomes


def seeds() -> list[bytes]:
    """Small models of many kinds, as the tests build them."""
    from tests.lite import micro_models as micro
    from tests.lite.conftest import Lite

    build = Lite()
    made: list[bytes] = []
    for kind in ("INT8", "FLOAT32", "INT16"):
        model = micro.Model(1)
        given = model.tensor((1, 16, 16, 3), kind)
        values = model.convolution(given, 8, 3, kind, stride=2)
        inner = model.convolution(model.depthwise(values, 1, 3, kind), 8, 1, kind)
        made.append(model.finish((given,), (model.add(values, inner, kind),)))
    model = micro.Model(2)
    given = model.tensor((1, 8, 8, 2))
    wide = [model.convolution(given, 16, 1) for _ in range(3)]
    narrow = [model.convolution(one, 2, 3, stride=2) for one in wide]
    values = model.add(model.add(narrow[0], narrow[1]), narrow[2])
    flat = model.tensor((1, 32), scale=2.0)
    model.operator("RESHAPE", (values, model.integers([1, 32])), (flat,), "ReshapeOptions")
    plan = [-1] * 64
    made.append(model.finish((given,), (flat,)))
    made.append(model.finish((given,), (flat,), plan[: len(model._graph.tensors)]))
    branch = build.G(
        [build.T((1, 64)), build.T((1, 64))], [build.Op("NEG", (0,), (1,))], (0,), (1,)
    )
    options = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    tensors = [build.T((1,), "BOOL"), *(build.T((1, 64)) for _ in range(3))]
    operators = [
        build.Op("IF", (0, 1), (2,), "IfOptions", options),
        build.Op("NEG", (2,), (3,)),
    ]
    made.append(build.build(build.G(tensors, operators, (0, 1), (3,)), branch, branch))
    made.append(build.build(build.dense()))
    made.append(build.build(build.dense(quantised=True)))
    return made


def damaged(number: int, models: list[bytes]) -> bytes:
    """File number n."""
    draw = random.Random(number)  # noqa: S311 - the same files each time
    model = draw.choice(models)
    kind = draw.randrange(8)
    if kind == 0:
        return model[: draw.randrange(len(model))]
    if kind == 1:
        return model[:8] + draw.randbytes(draw.randrange(3000))
    if kind == 2:
        other = draw.choice(models)
        place = draw.randrange(min(len(model), len(other)))
        return model[:place] + other[place:]
    broken = bytearray(model)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        place = draw.randrange(len(broken))
        if kind <= 4:
            broken[place] = draw.choice((0, 1, 2, 127, 128, 255, draw.randrange(256)))
        elif kind <= 6:
            size = draw.choice((2, 4))
            place -= place % size
            value = draw.choice((0, 1, 3, -1, -2, 1 << 15, (1 << 31) - 1, draw.randrange(1 << 16)))
            broken[place : place + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
        else:  # an offset that leads elsewhere
            near = max(0, place + draw.randrange(-64, 64))
            broken[place : place + 4] = near.to_bytes(4, "little")
    return bytes(broken[: len(model)])


def outcome(number: int, models: list[bytes], quantise: int) -> str:
    """What became of a file: "answer", or the code of the error."""
    content = damaged(number, models)
    draw = random.Random(-number)  # noqa: S311
    deep = quantise > 0 and number % quantise == 0
    try:
        shrunk = lite.shrink(
            content,
            draw.choice((None, 1, 2048, "8KiB", "64KiB")),
            draw.choice(("micro", "micro", *LITE_RUNTIMES)),
            "changes-training" if deep else "same-result",
            kernels=draw.choice(("reference", "any")),
            time_limit=SEARCH,
        )
    except SnuglyError as error:
        return error.code if error.hint else "CRASH an error without a hint"
    sizes_of(shrunk.data)
    # What was made must be readable, and shrinking it again must find nothing wrong with it: a file
    # that comes back unchanged is one that was read, and not one that nobody looked at.
    again = lite.shrink(shrunk.data, time_limit=SEARCH)
    assert again.after.arena >= 0
    return "answer"


def work(start: int, count: int, quantise: int, paths: list[Path]) -> None:
    """The process that does it: a line for each file."""
    import resource

    if not quantise:  # children have their own limit
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    models = [*seeds(), *(path.read_bytes() for path in paths)]
    for number in range(start, start + count):
        try:
            said = outcome(number, models, quantise)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            place = traceback.extract_tb(error.__traceback__)[-1]
            said = f"CRASH {type(error).__name__}: {error} ({place.name}:{place.lineno})"
            said = said.replace("\n", " ")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"PEAK {peak}\n{said}", flush=True)  # noqa: T201


def watched(files: range, quantise: int, paths: list[Path], stop: threading.Event) -> Counter[str]:
    """Let it be done, file by file: what became of them."""
    outcomes: Counter[str] = Counter()
    number = files.start
    limit = QUANTISED_LONGEST if quantise else LONGEST
    while number < files.stop and not stop.is_set():
        words = ["--work", "--start", str(number), "--count", str(files.stop - number)]
        words += ["--quantise", str(quantise), *map(str, paths)]
        command = [sys.executable, "-m", "tests.accuracy.lite_fuzz", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            assert child.stdout is not None
            try:
                number = _lines(child, number, outcomes, limit, stop)
            finally:
                child.kill()
        if number < files.stop and not stop.is_set():  # it ended or hung over this file
            outcomes[f"CRASH the process ended or hung over file {number}"] += 1
            number += 1
    return outcomes


def _lines(
    child: subprocess.Popen[bytes],
    number: int,
    outcomes: Counter[str],
    limit: float,
    stop: threading.Event,
) -> int:
    """Count what a process says, until it ends, hangs, or is to stop; the next file's number."""
    assert child.stdout is not None
    rest = b""
    descriptor = child.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        last = time.monotonic() + STARTING
        while not stop.is_set() and time.monotonic() < last + limit:
            if not selector.select(1.0):
                continue
            part = os.read(descriptor, 1 << 16)
            if not part:
                break
            *lines, rest = (rest + part).split(b"\n")
            now = time.monotonic()
            outcomes[SLOWEST] = max(outcomes[SLOWEST], round(1000 * (now - last)))
            last = now
            for line in lines:
                text = line.decode(errors="replace")
                if text.startswith("PEAK"):
                    outcomes[PEAK] = max(outcomes[PEAK], int(text.split()[1]))
                    continue
                if text.startswith("CRASH"):
                    text += f" [file {number}]"
                outcomes[text] += 1
                number += 1
    return number


def in_turns(
    files: range, jobs: int, quantise: int, paths: list[Path], found: Counter[str]
) -> None:
    """All files, a share at a time for each of so many processes; counted as shares are done."""
    stop = threading.Event()
    share = max(1, min(SHARE, -(-len(files) // jobs)))
    shares = [files[start : start + share] for start in range(0, len(files), share)]
    with ThreadPoolExecutor(jobs) as pool:
        done = [pool.submit(watched, one, quantise, paths, stop) for one in shares]
        try:
            wait(done)
        finally:  # stopped from outside: what is under way ends, and what it found counts
            stop.set()
            for one in done:
                one.cancel()
            for one in done:
                if not one.cancelled():
                    _add(one.result(), found)


def _add(outcomes: Counter[str], found: Counter[str]) -> None:
    largest = {name: max(outcomes[name], found[name]) for name in (PEAK, SLOWEST)}
    found.update(outcomes)
    for name, value in largest.items():
        found[name] = value


def stopped(*_: object) -> None:
    """Ended from outside, by `timeout` say: what was found until then is still told."""
    raise KeyboardInterrupt


def main() -> int:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--quantise", type=int, default=0, metavar="N")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("models", nargs="*", type=Path)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.start, arguments.count, arguments.quantise, arguments.models)
        return 0
    began = time.monotonic()
    signal.signal(signal.SIGTERM, stopped)
    found: Counter[str] = Counter()
    try:
        files = range(arguments.start, arguments.start + arguments.count)
        in_turns(files, arguments.jobs, arguments.quantise, arguments.models, found)
    except KeyboardInterrupt:
        print("stopped before the end")  # noqa: T201 - a command
    peak, slowest = found.pop(PEAK, 0), found.pop(SLOWEST, 0) / 1000
    crashes = [text for text in found if text.startswith("CRASH")]
    for text in crashes:
        print(text)  # noqa: T201 - a command
    answers = {text: times for text, times in sorted(found.items()) if text not in crashes}
    print(  # noqa: T201 - a command
        f"{found.total()} files in {time.monotonic() - began:.0f} s: {answers};"
        f" {len(crashes)} crashes or hangs; slowest {slowest:.1f} s, peak {peak} MiB"
    )
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
