"""Overwrites the inodes of the files in an ext4 image, its own inodes left alone."""

import os
import re
import subprocess
import sys

told = subprocess.run(["dumpe2fs", sys.argv[1]], capture_output=True, text=True, check=True).stdout
table = int(re.search(r"Inode table at (\d+)", told)[1])
block = int(re.search(r"Block size: +(\d+)", told)[1])
size = int(re.search(r"Inode size:\s+(\d+)", told)[1])
with open(sys.argv[1], "r+b") as stream:
    stream.seek(table * block + 11 * size)
    stream.write(os.urandom(8 * size))
