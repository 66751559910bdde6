"""Renames the oldest C library version that a program asks for to one that no system has yet."""

import sys

with open(sys.argv[1], "r+b") as stream:
    data = stream.read()
    data = data.replace(b"GLIBC_2.34\0", b"GLIBC_2.99\0")
    words = [b"GLIBC_2.34", b"GLIBC_2.99"]

    def elf_hash(name):
        h = 0
        for c in name:
            h = (h << 4) + c
            g = h & 0xF0000000
            if g:
                h ^= g >> 24
            h &= ~g & 0xFFFFFFFF
        return h.to_bytes(4, "little")

    data = data.replace(elf_hash(words[0]), elf_hash(words[1]))
    stream.seek(0)
    stream.write(data)
