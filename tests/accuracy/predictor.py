"""The child process that calls `snugly.predict` on a program, at several batch sizes.

It runs under the same environment as the measured process: oneDNN on or off changes the kernels.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.accuracy.zoo import Function, Program, find


def predict(program: Program, built: Any, batch: int, mode: str, **where: Any) -> Any:
    """The prediction, asked for as a user would."""
    import snugly

    if isinstance(built, Function):
        return snugly.predict(built.call, *built.specs(batch), device=where.get("device"))
    example: list[Any] = []
    if program.inputs is not None:  # a subclassed model does not know its inputs
        import tensorflow as tf

        arrays = program.inputs + ((program.targets or ()) if mode == "train" else ())
        example = [tf.TensorSpec(array.concrete(batch), array.dtype) for array in arrays]
    return snugly.predict(built, *example, batch_size=batch, training=mode == "train", **where)


def answer(program: Program, wanted: list[tuple[int, str]], **where: Any) -> list[dict[str, Any]]:
    """One answer per batch and mode; what fails says so and does not stop the others."""
    built = program.build()
    answers: list[dict[str, Any]] = []
    for batch, mode in wanted:
        found: dict[str, Any] = {"batch": batch, "mode": mode}
        begun = time.perf_counter()
        try:
            prediction = predict(program, built, batch, mode, **where)
            for key in ("peak", "low", "high", "requested", "resident"):
                found[key] = int(getattr(prediction, key))
        except ImportError as error:
            found["error"] = f"no predictor: {error}"
        except Exception as error:  # noqa: BLE001 - a row of the table, not its end
            found["error"] = f"{type(error).__name__}: {str(error)[:300]}"
        found["seconds"] = round(time.perf_counter() - begun, 3)
        answers.append(found)
    return answers


def main() -> None:
    request = json.loads(sys.argv[1])
    wanted = [(batch, mode) for batch, mode in request["wanted"]]
    found = answer(find(request["program"]), wanted, **request.get("where", {}))
    Path(request["answer"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
