"""What is computed again under a budget: how good the plans are, and how long planning takes.

    python benchmarks/recompute_planning.py [large] [solvers] [even]
    python benchmarks/recompute_planning.py solvers --save steps.json
    python benchmarks/recompute_planning.py solvers --load steps.json    # needs no TensorFlow

`large`: `snugly.shrink` of ResNet152 and of a transformer of 24 layers to half and less of what a
step takes; the goal is under 60 s. `solvers`: the chain alone, the chain polished, HiGHS and, where
ortools can be imported, CP-SAT, on the same small steps. ortools wants another protobuf than
TensorFlow: save the steps, and load them where it is. `even`: the planner beside even segments, √n
of them as `tf.recompute_grad` is used by hand, at the peak that those come to.

Costs are seconds that the model of operations expects, as shares of the forward pass.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snugly.planning.recomputing import (
    Gradient,
    Part,
    Problem,
    Value,
    cheapest,
    peak_of,
    search,
    seconds_of,
)
from snugly.planning.recomputing.chain import Chain
from snugly.planning.recomputing.exact import Formulation
from snugly.planning.solvers import Program, Solution, solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.planning.recomputing import Segments

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

LARGE = {"ResNet152": 32, "transformer24": 16}
"""With the batch size of each."""
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
SECONDS = search.SECONDS
"""For each solver and budget, as the planner gives it."""
EVEN = {"ResNet50": 32, "EfficientNetB0": 32, "transformer": 16}


def problem_of_model(model: Any, batch: int) -> Problem:
    """A model's training step as the planner sees it."""
    from snugly.training.batches import batch_of
    from snugly.training.parts import read_parts

    model.compile("sgd", "mse", jit_compile=False)
    example, size = batch_of(model, (), batch)
    return read_parts(model, example, size).problem


def steps(load: Path | None) -> dict[str, Problem]:
    """The small steps, built or read from a file."""
    if load is None:
        import recompute_graphs

        built = recompute_graphs.GRAPHS.items()
        return {name: problem_of_model(build(), 16) for name, build in built}
    return {
        name: Problem(
            tuple(Part(**part) for part in each["parts"]),
            tuple(
                Value(**{**v, "used_by": tuple(v["used_by"]), "needed_by": tuple(v["needed_by"])})
                for v in each["values"]
            ),
            tuple(Gradient(**gradient) for gradient in each["gradients"]),
        )
        for name, each in json.loads(load.read_text()).items()
    }


def by_highs(program: Program) -> Solution:
    """HiGHS, which is held in by time alone."""
    return solve(program, nodes=10**9, seconds=SECONDS)


def by_cp_sat(program: Program) -> Solution:
    """CP-SAT on the same rows, on two threads."""
    from ortools.sat.python import cp_model  # pyright: ignore[reportMissingImports]

    model = cp_model.CpModel()
    columns = [model.NewIntVar(0, most, str(i)) for i, most in enumerate(program.most)]
    for row in program.rows:
        model.Add(sum(times * columns[i] for i, times in row.columns.items()) <= row.limit)
    scale = 1e9 / (sum(program.costs) or 1)
    model.Minimize(sum(round(cost * scale) * columns[i] for i, cost in enumerate(program.costs)))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = SECONDS, 2
    status = solver.Solve(model)
    found = status in {cp_model.OPTIMAL, cp_model.FEASIBLE}
    return Solution(
        tuple(solver.Value(one) for one in columns) if found else None,
        status in {cp_model.OPTIMAL, cp_model.INFEASIBLE},
    )


def solved(
    problem: Problem, budget: int, way: Callable[[Program], Solution]
) -> tuple[Segments | None, bool]:
    """A solver's plan, and whether it is the best."""
    formulation = Formulation(problem, budget)
    solution = way(formulation.program)
    if solution.columns is None:
        return None, solution.proven
    return formulation.segments(solution), solution.proven


def by_chain(problem: Problem, budget: int) -> tuple[Segments | None, bool]:
    """The shortest path for this budget alone."""
    found = Chain(problem).shortest(budget)
    return (found if found is None or peak_of(problem, found) <= budget else None), False


def compare_solvers(load: Path | None, save: Path | None) -> None:
    """Every way on every step."""
    problems = steps(load)
    if save is not None:
        save.write_text(json.dumps({name: asdict(each) for name, each in problems.items()}))
    ways: dict[str, Callable[[Problem, int], tuple[Segments | None, bool]]] = {
        "chain": by_chain,
        "polished": lambda p, b: (next(iter(search._nearly(p, b)), None), False),  # noqa: SLF001
        "HiGHS": lambda p, b: solved(p, b, by_highs),
    }
    try:
        import ortools  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        print("CP-SAT: ortools is not installed here, left out")
    else:
        ways["CP-SAT"] = lambda p, b: solved(p, b, by_cp_sat)
    header = "".join(f"{way:>20}" for way in ways)
    print(f"{'step':24} {'parts':>5} {'budget':>7}{header}   (% of the forward pass, seconds)")
    totals = dict.fromkeys(ways, 0.0)
    for name, problem in problems.items():
        whole = peak_of(problem, ())
        forward = sum(part.seconds for part in problem.parts) or 1.0
        for share in SHARES:
            cells, impossible = [], False
            for way, ask in ways.items():
                begun = time.perf_counter()
                plan, proven = ask(problem, int(whole * share))
                took = time.perf_counter() - begun
                totals[way] += took
                over = plan is not None and peak_of(problem, plan) > int(whole * share)
                text = "over" if over else "none"
                if plan is not None and not over:
                    text = f"{100 * seconds_of(problem, plan) / forward:.1f}"
                impossible = impossible or (proven and plan is None)
                cells.append(f"{text + (' proven' if proven else '')} {took:5.2f}")
            print(
                f"{name:24} {len(problem.parts):5} {share:7.0%}"
                + "".join(f"{cell:>20}" for cell in cells),
                flush=True,
            )
            if impossible:
                break
    print("in all, s: " + ", ".join(f"{way} {seconds:.1f}" for way, seconds in totals.items()))


def compare_even() -> None:
    """The planner at the peak of √n even segments."""
    import checkpoint

    from snugly.training.cutting import cut, ordered_nodes

    for name, batch in EVEN.items():
        model = checkpoint.build(name)
        problem = problem_of_model(model, batch)
        place = {id(node): i for i, node in enumerate(ordered_nodes(model))}
        pieces = [step for step in cut(model, math.isqrt(len(model.layers))) if step.recomputed]
        spans = [sorted(place[id(node)] for node in step.nodes) for step in pieces]
        even = tuple(sorted((several[0], several[-1] + 1) for several in spans))
        budget, forward = peak_of(problem, even), sum(part.seconds for part in problem.parts)
        begun = time.perf_counter()
        plan = cheapest(problem, budget)
        took = time.perf_counter() - begun
        ours = math.nan if plan is None else seconds_of(problem, plan) / forward
        print(
            f"{name:16} {len(problem.parts):4} parts, peak / {peak_of(problem, ()) / budget:.2f}:"
            f" {len(even)} even segments {seconds_of(problem, even) / forward:.1%} of the forward"
            f" pass, planned {ours:.1%}, in {took:.1f} s (all predicted)",
            flush=True,
        )


def shrink_large(name: str, share: float) -> None:
    """One of the large models, to a share of what a step takes."""
    import recompute_graphs

    import snugly
    from snugly.training import choosing

    model = recompute_graphs.large(name)
    model.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
    batch = LARGE[name]
    plain = snugly.predict(model, batch_size=batch, training=True, jit_compile=False)
    budget = int(plain.resident) + int(share * (int(plain.high) - int(plain.resident)))
    planning, predictions = [0.0], [1]  # the first reading of the step is one
    plan, predict = choosing.cheapest, choosing.Question.predict

    def timed(problem: Problem, target: int) -> Segments | None:
        begun = time.perf_counter()
        found = plan(problem, target)
        planning[0] += time.perf_counter() - begun
        return found

    def counted(self: Any, model: Any) -> Any:
        predictions[0] += 1
        return predict(self, model)

    choosing.cheapest, choosing.Question.predict = timed, counted
    begun = time.perf_counter()
    try:
        small = snugly.shrink(model, memory=budget, batch_size=batch)
    except MemoryError:
        said = "does not fit"
    else:
        extra = sum(change.extra_time for change in small.plan.changes)
        said = f"{extra:+.1%} time expected, at most {small.prediction.high} predicted"
    took = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:16} to {share:4.0%} ({budget / 2**30:.2f} GiB): {took:5.1f} s, of which the plans"
        f" {planning[0]:4.1f} s; {predictions[0]} predictions; {said}; {memory:.1f} GiB of memory",
        flush=True,
    )


def main() -> None:
    """The parts that are asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["large", "solvers", "even"])
    parser.add_argument("--save", type=Path)
    parser.add_argument("--load", type=Path)
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        shrink_large(options.only[0], float(options.only[1]))
        return
    if "large" in options.parts:
        for name in LARGE:
            for share in (0.5, 0.3):
                command = [sys.executable, __file__, "--only", name, str(share)]
                subprocess.run(command, check=True)
    if "solvers" in options.parts:
        compare_solvers(options.load, options.save)
    if "even" in options.parts:
        compare_even()


if __name__ == "__main__":
    main()
