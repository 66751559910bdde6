"""A command run in the process of the tests, which has imported it already: a process of its own takes two seconds."""

import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from typing import NamedTuple

import pytest

from service.__main__ import main


class Finished(NamedTuple):
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


def run_command(environ: Mapping[str, str], *arguments: str) -> Finished:
    """Run `faultline` with arguments in an environment."""
    stdout, stderr = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, stdout, stderr:
        patch.setattr(os, "environ", dict(environ))
        with redirect_stdout(stdout), redirect_stderr(stderr):
            try:
                code = main(arguments)
            except SystemExit as end:  # argparse, at a wrong argument
                code = int(end.code or 0)
        return Finished(code, *(_written(stream) for stream in (stdout, stderr)))


def _written(stream: TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
