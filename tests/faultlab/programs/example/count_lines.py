import sys
from pathlib import Path

words = 0
for number, line in enumerate(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()):
    words += len(line.split())
print("words:", words)
