"""pytest plugin: `@pytest.mark.fits_in("2GiB")` and the fixture `memory_growth`.

pytest loads it at every start, so nothing else is imported before a test asks for it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from snugly.integrations.growth import Growth
    from snugly.units import Size

MARK: Final = "fits_in"
MARKER: Final = (
    f'{MARK}(size, of="process", device=None): the test fails if it held more than `size`, such as'
    ' "2GiB", at its peak. of="process": the resident set of the whole process; of="added": how far'
    ' that rose during the test; of="device": what TensorFlow\'s allocator handed out.'
)
SUBJECTS: Final = {
    "process": "the process occupied",
    "added": "the test added",
    "device": "{device}'s allocator handed out",
}
AT_MOST: Final = "64KiB"
ITERATIONS: Final = 20
WARM_UP: Final = 5


@dataclass(frozen=True, slots=True)
class Limit:
    """What one marker asks for."""

    size: Size
    of: str
    device: str | None

    def describe(self, measured: int) -> str:
        """What was measured, and what is allowed."""
        from snugly.integrations.reading import chosen_device
        from snugly.units import Size

        subject = SUBJECTS[self.of].format(device=chosen_device(self.device))
        return f"{subject} {Size(measured)} at its peak (measured), {self.size} is allowed"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a marker that cannot be understood before any test is run."""
    for item in items:
        for marker in item.iter_markers(MARK):
            read_marker(marker, item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Watch the test itself; fixtures are set up before and taken down after."""
    limits = limits_of(item)
    if not limits:
        return (yield)
    measures = {limit.of: begin(limit) for limit in limits}
    try:
        outcome = yield
    finally:
        # A test that failed has its own reason; the figures stand beside it.
        peaks = {limit: measures[limit.of]() for limit in limits}
        told = [limit.describe(peak) for limit, peak in peaks.items() if peak is not None]
        item.add_report_section("call", "memory", "\n".join(told))
    exceeded = {
        limit: limit.describe(peak)
        for limit, peak in peaks.items()
        if peak is not None and peak > limit.size
    }
    if exceeded:
        pytest.fail("\n".join([*exceeded.values(), "", hint_for(exceeded)]), pytrace=False)
    return outcome


@pytest.fixture
def memory_growth() -> Callable[..., Growth]:
    """Fail if a step that is repeated keeps growing: `memory_growth(lambda: model.predict(x))`.

    `memory_growth(step, iterations=20, at_most="64KiB", warm_up=5)` runs the step, after some
    times that do not count, and fails when the process or TensorFlow's allocator grows by more
    than `at_most` an iteration in every quarter of the run. Gives back what was measured.
    """

    def check(
        step: Callable[[], object],
        iterations: int = ITERATIONS,
        at_most: str | int = AT_MOST,
        warm_up: int = WARM_UP,
    ) -> Growth:
        __tracebackhide__ = True
        from snugly.integrations.growth import measure_growth
        from snugly.units import Size

        allowed = Size(at_most)
        growth = measure_growth(step, iterations, warm_up)
        if growth.largest > allowed:
            pytest.fail(
                f"{growth}; {allowed} is allowed\n\nhint: `snugly profile --leaks SCRIPT` names"
                " the kind of leak and its line; in the step, look for models, functions or"
                " datasets that are made anew, and for lists that keep tensors"
            )
        return growth

    return check


def limits_of(item: pytest.Item) -> list[Limit]:
    """The nearest marker for each thing that is limited: the test's own before its class's."""
    nearest: dict[str, Limit] = {}
    for marker in item.iter_markers(MARK):
        limit = read_marker(marker, item.nodeid)
        nearest.setdefault(limit.of, limit)
    return list(nearest.values())


def read_marker(marker: pytest.Mark, where: str) -> Limit:
    """A marker's arguments; a usage error where they cannot be understood."""
    from snugly.errors import InputError

    try:
        return _limit(*marker.args, **marker.kwargs)
    except InputError as problem:
        message, hint = problem.message, problem.hint
    except TypeError:
        arguments = ", ".join(
            [*map(repr, marker.args), *(f"{key}={value!r}" for key, value in marker.kwargs.items())]
        )
        message = f"it takes a size, of= and device=, not ({arguments})"
        hint = f'write @pytest.mark.{MARK}("2GiB") or @pytest.mark.{MARK}("2GiB", of="device")'
    raise pytest.UsageError(f"{where}: @pytest.mark.{MARK}: {message}\nhint: {hint}")


def _limit(size: Any, of: str = "process", device: str | None = None) -> Limit:
    from snugly.errors import InputError
    from snugly.units import Size

    if of not in SUBJECTS:
        known = ", ".join(f'"{name}"' for name in SUBJECTS)
        raise InputError(f"of={of!r} is not known", hint=f"give one of {known}")
    if device is not None and of != "device":
        raise InputError(f'device={device!r} needs of="device"', hint='add of="device"')
    return Limit(Size(size), of, device)


def begin(limit: Limit) -> Callable[[], int | None]:
    """Begin to measure; what is given back tells the peak since."""
    if limit.of == "device":
        return _device_peak(limit.device)
    from snugly.devices.process import ResidentPeak, resident_bytes

    before = resident_bytes() if limit.of == "added" else 0
    resident = ResidentPeak()
    if not resident.exact:
        _warn("this system does not let the peak be reset: a short rise may be missed")
    return lambda: resident.read() - before


def _device_peak(device: str | None) -> Callable[[], int | None]:
    from snugly.integrations.reading import chosen_device
    from snugly.recording.allocator import Peak, memory_info

    peak = Peak(chosen_device(device))

    def read() -> int | None:
        used = chosen_device(device)
        if used == peak.device:
            reached = peak.read()
        else:  # the test started TensorFlow, and it has a GPU: its peak counts from that start
            info = memory_info(used)
            reached = info.peak if info is not None else None
        if reached is None:
            _warn(f"nothing was measured: TensorFlow was not used, or keeps no figures for {used}")
        return reached

    return read


def _warn(reason: str) -> None:
    warnings.warn(pytest.PytestWarning(f"@pytest.mark.{MARK}: {reason}"), stacklevel=2)


def hint_for(limits: Iterable[Limit]) -> str:
    """What to do about a test that held too much."""
    if any(limit.of == "process" for limit in limits):
        return (
            "hint: the process keeps what earlier tests loaded;"
            ' of="added" counts what the test itself adds'
        )
    return "hint: `snugly.record` inside the test says what was live at the peak, and from where"
