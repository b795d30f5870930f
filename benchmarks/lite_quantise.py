"""What quantising does to the memory of a float `.tflite`: predicted, and what interpreters take.

    python benchmarks/lite_quantise.py [--runtime litert]… [MODEL.tflite…]

Every form that ai-edge-quantizer gives is loaded and run once by each runtime, in a process of its
own, beside the float model; inputs to calibrate by are made up. Without models, the float model of
`shared/data`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from snugly.lite.measuring import WHAT, run_once
from snugly.lite.quantising import FORMS, quantised, samples_for
from snugly.predicting.lite import predict_tflite
from snugly.readers.tflite import read_tflite

MODEL = Path(__file__).parents[2] / "shared/data/lite/mlpt_vww_96_float.tflite"


def rows(path: Path, runtimes: list[str]) -> None:
    """Print a line for each form and runtime."""
    source = path.read_bytes()
    samples = samples_for(read_tflite(source), None)
    forms = {"float": source}
    for made in quantised(source, samples, tuple(FORMS)):
        if made.data is None:
            print(f"{made.form}: {made.note}")
            continue
        forms[made.form] = made.data
        if made.accuracy is not None:
            print(f"{made.form}: {made.accuracy.sentence()}")
    for form, data in forms.items():
        for runtime in runtimes:
            prediction = predict_tflite(data, runtime)
            run = run_once(data, runtime)
            taken = "–" if run.bytes is None else f"{int(run.bytes):,}"
            least = "at least " if prediction.at_least else ""
            print(
                f"{path.stem:24} {form:16} file {len(data):>9,}  {runtime:8}"
                f" predicted {least}{int(prediction.peak):>9,}  measured {taken:>9}"
                f"  {run.refusal or ''}",
                flush=True,
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", action="append", choices=tuple(WHAT))
    parser.add_argument("models", nargs="*", type=Path)
    arguments = parser.parse_args()
    for path in arguments.models or [MODEL]:
        rows(path, arguments.runtime or list(WHAT))


if __name__ == "__main__":
    main()
