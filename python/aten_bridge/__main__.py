"""The command, as `python -m aten_bridge`."""

from aten_bridge._command import main

if __name__ == "__main__":
    main()
