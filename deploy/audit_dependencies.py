"""Checks a lock file for known vulnerabilities, by pip-audit, and says so if no database could be reached.

Exit codes: 0 no known vulnerability; 1 vulnerabilities found; 2 not checked.
"""

import argparse
import subprocess
import sys
from pathlib import Path

FOUND = "known vulnerabilit"
NONE_FOUND = "No known vulnerabilities found"
NOT_CHECKED = 2


def main() -> int:
    """Run pip-audit on a lock file and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lock", type=Path)
    parser.add_argument("--uv", default="uv", help="the program that runs pip-audit")
    args = parser.parse_args()
    # Strict: a package that the database does not know is an error, and not silently left out.
    command = [args.uv, "tool", "run", "pip-audit", "--strict", "--disable-pip", "--require-hashes", "-r", args.lock]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return _not_checked(str(error))
    said = done.stdout + done.stderr
    print(said, end="")
    if done.returncode == 0 and NONE_FOUND in said:
        return 0
    return 1 if FOUND in said and NONE_FOUND not in said else _not_checked("the answer is above")


def _not_checked(reason: str) -> int:
    print(f"NOT CHECKED: pip-audit or its database could not be reached ({reason})", file=sys.stderr)
    return NOT_CHECKED


if __name__ == "__main__":
    sys.exit(main())
