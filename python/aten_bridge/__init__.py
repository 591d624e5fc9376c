"""Python modules of aten_bridge, one for each host: `mindspore`, `torch` and `jax`."""
