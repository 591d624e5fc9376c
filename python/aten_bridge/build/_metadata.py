"""The requirement of a package whose libraries are for several versions, for scikit-build-core.

In its pyproject.toml, which names the versions once:

    [project]
    dependencies = ["aten-bridge"]
    dynamic = ["dependencies"]

    [[tool.dynamic-metadata]]
    provider = "aten_bridge.pytorch"

    [tool.scikit-build.cmake.define]
    PYTORCH_VERSIONS = ["2.11", "2.13"]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aten_bridge._text import format_value
from aten_bridge.build._versions import requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # scikit-build-core needs it there


class Requirement:
    """The provider, as its entry point names it."""

    @staticmethod
    def dynamic_metadata(
        settings: Mapping[str, Any], _project: Mapping[str, Any]
    ) -> dict[str, list[str]]:
        """What is added to the project's dependencies; builds run in the project's folder."""
        where = "pyproject.toml: expected "
        if settings:
            raise ValueError(
                f"{where}no settings of aten_bridge.pytorch, got {format_value(list(settings))}"
            )
        table: Any = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
        for key in ("tool", "scikit-build", "cmake", "define", "PYTORCH_VERSIONS"):
            table = table.get(key, {}) if isinstance(table, dict) else {}
        if not isinstance(table, list) or not table:
            raise ValueError(
                f"{where}a list of minor versions of PyTorch, PYTORCH_VERSIONS in "
                f"[tool.scikit-build.cmake.define], got {format_value(table) if table else 'none'}"
            )
        return {"dependencies": [requirement(table)]}
