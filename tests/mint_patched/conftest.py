"""With the functions of install(), which stay for the whole process."""

import mindspore as ms

from aten_bridge.mint import install


def pytest_configure():
    ms.set_device("CPU")
    install()
