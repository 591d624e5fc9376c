"""Writes the headers of another version: change_headers.py INCLUDE FOLDER.

Its classes have the same names, and other members: where one library would use what the other one
has, a call reads or writes what is something else.
"""

import pathlib
import shutil
import sys

MEMBER = "  int64_t of_another_version = 7;\n"
FUNCTION = "  virtual int64_t function_of_another_version() const { return 7; }\n"
# What gets a member before it, which nothing else in the header is.
CHANGES = {
    "core/errors.h": ["  Status status_;\n", "  const char* operator_name_;\n"],
    "hosts/introspection/introspection.h": ["  const KernelBase& kernel;\n"],
    "hosts/pytorch/registry.h": ["  std::mutex registering_;\n"],
    "interface/call_sites.h": [" public:\n  CallSiteCache() = default;\n"],
    "interface/kernel_base.h": ["  KernelDescriptor info;\n"],
}
OTHERS = {
    "core/config.h": ("VERSION_MINOR 1", "VERSION_MINOR 2"),
    "interface/kernel_base.h": (
        "  /// Calls the kernel's function.\n",
        f"{FUNCTION}  /// Calls the kernel's function.\n",
    ),
}


def change(path, old, new):
    text = path.read_text()
    if text.count(old) != 1:
        sys.exit(f"{path}: expected {old!r} once, got {text.count(old)}")
    path.write_text(text.replace(old, new))


def main(include, folder):
    shutil.copytree(include, folder, dirs_exist_ok=True)
    for name, places in CHANGES.items():
        for place in places:
            change(folder / "aten_bridge" / name, place, MEMBER + place)
    for name, (old, new) in OTHERS.items():
        change(folder / "aten_bridge" / name, old, new)
    (folder / "aten_bridge.h").touch()


main(*map(pathlib.Path, sys.argv[1:]))
