"""Builds the C injector in place; everything else stands in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["injector_c/build.py:ffibuilder"])
