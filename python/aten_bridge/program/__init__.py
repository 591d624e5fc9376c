"""PyTorch modules as programs, which a host runs without Python."""

from aten_bridge.program._export import ModulePrograms, Training, export_both, export_module
from aten_bridge.program._text import NotExportable

__all__ = ["ModulePrograms", "NotExportable", "Training", "export_both", "export_module"]
