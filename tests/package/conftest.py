"""The installed prefix, for the tests of this folder."""

import pytest

from abi import toolchain


@pytest.fixture(scope="session")
def prefix():
    """The library as it is installed."""
    return toolchain.install_prefix()


def pytest_collection_modifyitems(items):
    toolchain.be_patient(items, __file__)
