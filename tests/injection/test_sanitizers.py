"""The C core without Python, under the address, undefined-behaviour and thread sanitizers."""

import pytest

from ..sanitizers import assert_clean, build_checked_injector


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_the_core_is_clean(tmp_path, sanitizer):
    assert_clean(tmp_path, build_checked_injector(tmp_path, sanitizer, "driver.c"), seconds=60)
