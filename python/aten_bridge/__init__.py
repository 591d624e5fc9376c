"""Python modules of aten_bridge, one for each host; `aten_bridge.mindspore` is the first."""
