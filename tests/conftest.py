"""What every test may ask for."""

import pytest

pytest_plugins = ["tests.labs.fixtures"]


def pytest_configure(config: pytest.Config) -> None:
    # kafka-python reads its protocol's schemas that way when it is imported.
    config.addinivalue_line("filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning")
