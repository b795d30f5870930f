"""How training is spread over devices and machines: what `strategy=` means.

    mirrored:4              one machine with four devices
    multiworker:2x4         two machines with four devices each, gradients over the network
    parameter-server:4x2    four workers, two servers that hold the variables

A strategy of `tf.distribute` says the same of itself. No cluster is needed for a description.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from snugly.errors import InputError, suggest

Kind: TypeAlias = Literal["mirrored", "multiworker", "parameter-server"]

CODE: Final = "SNG109"
LARGEST_COUNT: Final = 100_000  # processes; more is a slip of the finger
_FORMS: Final[dict[str, tuple[str, str]]] = {
    "mirrored": (r"(\d+)", "mirrored:4 for one machine with four devices"),
    "multiworker": (r"(\d+)(?:x(\d+))?", "multiworker:2x4 for two machines with four devices each"),
    "parameter-server": (
        r"(\d+)x(\d+)",
        "parameter-server:4x2 for four workers and two parameter servers",
    ),
}
# The classes of tf.distribute, by the name of the class that each is or derives from.
_CLASSES: Final[dict[str, Kind]] = {
    "MirroredStrategy": "mirrored",
    "MirroredStrategyV1": "mirrored",
    "CollectiveAllReduceStrategy": "multiworker",
    "CollectiveAllReduceStrategyV1": "multiworker",
    "ParameterServerStrategyV2": "parameter-server",
}


@dataclass(frozen=True, slots=True)
class Strategy:
    """How many processes there are, and how gradients get from one to another."""

    kind: Kind
    workers: int = 1
    # Devices of each worker; each trains on its own part of the batch.
    devices: int = 1
    servers: int = 0
    # Gradients go in packs of about so many bytes; 0 for all of them in one, which is the default.
    bytes_per_pack: int = 0
    # "ring" or "nccl" where somebody chose; None for what TensorFlow takes.
    communication: str | None = None

    def __str__(self) -> str:
        if self.kind == "mirrored":
            return f"mirrored:{self.devices}"
        other = self.servers if self.kind == "parameter-server" else self.devices
        return f"{self.kind}:{self.workers}x{other}"

    @property
    def replicas(self) -> int:
        """How many devices train, on all workers."""
        return self.workers * self.devices

    @property
    def in_step(self) -> int:
        """Among how many replicas one batch is divided: parameter servers wait for nobody."""
        return self.devices if self.kind == "parameter-server" else self.replicas

    def largest_share(self, batch_size: int) -> int:
        """The most examples that one replica gets of a batch.

        `experimental_distribute_dataset`, through which Keras's `fit` goes, gives each replica the
        same number or one more (distribute.batch_sizes_for_worker).
        """
        return -(-batch_size // self.in_step)

    def carried_by(self, *, on_gpu: bool) -> str:
        """What exchanges the gradients.

        MirroredStrategy asks for NCCL on GPUs (mirrored_strategy.py); between workers a ring is
        taken unless NCCL was asked for (collective_param_resolver_local.cc).
        """
        if not on_gpu:
            return "ring"
        return self.communication or ("nccl" if self.kind == "mirrored" else "ring")


def strategy_from(given: Any) -> Strategy:
    """A description or a `tf.distribute` strategy, or an error that names what can be given."""
    if isinstance(given, Strategy):
        return given
    if isinstance(given, str):
        return _parse(given)
    names = [base.__name__ for base in type(given).__mro__]
    kind: Kind | None = next((_CLASSES[name] for name in names if name in _CLASSES), None)
    if kind is None:
        raise InputError(f"memory under a {type(given).__name__} cannot be predicted", code=CODE)
    return _read(given, kind)


def _parse(text: str) -> Strategy:
    name, _, counts = text.strip().partition(":")
    if name not in _FORMS:
        near = suggest(name, _FORMS)
        known = "write " + ", ".join(form for _, form in _FORMS.values())
        raise InputError(
            f"there is no strategy {text!r}", code=CODE, hint=f"{near} {known}".strip()
        )
    pattern, form = _FORMS[name]
    match = re.fullmatch(pattern, counts)
    numbers = [int(number or 1) for number in match.groups()] if match else []
    if not numbers or not all(0 < number <= LARGEST_COUNT for number in numbers):
        raise InputError(f"cannot read the strategy {text!r}", code=CODE, hint=f"write {form}")
    if name == "mirrored":
        return Strategy("mirrored", devices=numbers[0])
    if name == "multiworker":
        return Strategy("multiworker", workers=numbers[0], devices=numbers[1])
    return Strategy("parameter-server", workers=numbers[0], servers=numbers[1])


def _read(given: Any, kind: Kind) -> Strategy:
    """What a strategy says of itself, some of it only in private."""
    inside = given.extended
    replicas = int(given.num_replicas_in_sync)
    if kind == "parameter-server":
        return _read_servers(inside, replicas)
    exchange = type(inside._cross_device_ops).__name__  # noqa: SLF001
    if exchange != "CollectiveAllReduce":
        raise InputError(
            f"memory under a strategy with {exchange} cannot be predicted",
            code=CODE,
            hint="leave cross_device_ops out: TensorFlow then takes collectives",
        )
    options = inside._communication_options  # noqa: SLF001
    chosen = str(options.implementation.value).lower()
    workers = int(getattr(inside, "_num_workers", 1)) if kind == "multiworker" else 1
    return Strategy(
        kind,
        workers,
        replicas // workers,
        bytes_per_pack=int(options.bytes_per_pack),
        communication=None if chosen == "auto" else chosen,
    )


def _read_servers(inside: Any, replicas: int) -> Strategy:
    unknown = {
        "several GPUs in each worker": replicas > 1,
        "a variable_partitioner": inside._variable_partitioner is not None,  # noqa: SLF001
    }
    for name, is_there in unknown.items():
        if is_there:
            raise InputError(
                f"memory under a ParameterServerStrategy with {name} cannot be predicted",
                code=CODE,
                hint="describe one without: parameter-server:4x2 for four workers and two servers",
            )
    workers, servers = inside._num_workers, inside._num_ps  # noqa: SLF001
    return Strategy("parameter-server", int(workers), servers=int(servers))
