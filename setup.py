"""Builds the C injector, the C reader of configs and the C simulator in place; everything else stands in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["injector_c/build.py:ffibuilder", "reader_c/build.py:ffibuilder", "simulator_c/build.py:ffibuilder"])
