from setuptools import setup

from aten_bridge.build.setuptools import KernelLibrary, commands

setup(
    ext_modules=[KernelLibrary("my_ops.my_ops", ["../kernel_package/swish.cpp"])],
    cmdclass=commands,
)
