"""PyTorch modules as programs, which a host runs without Python."""

from aten_bridge.program._source import save
from aten_bridge.program._trees import NotExportable

__all__ = ["NotExportable", "save"]
