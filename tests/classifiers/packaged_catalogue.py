"""A scanner and an extractor of the packaged catalogue. Each takes 0.2 s and 9 MiB to build: once in a process."""

from classifiers import signatures
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner

SCANNER = Scanner(signatures.packaged())
EXTRACTOR = Extractor(SCANNER)
