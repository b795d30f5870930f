"""What a program would do: operations, tensors, dependencies."""

from snugly.graph.model import Access, Graph, Kind, Operation, Origin, Resident, Tensor

__all__ = ["Access", "Graph", "Kind", "Operation", "Origin", "Resident", "Tensor"]
