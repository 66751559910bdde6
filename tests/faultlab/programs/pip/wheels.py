"""Makes the wheels and source archives of a small local index."""

import io
import sys
import tarfile
import zipfile
from pathlib import Path


def wheel(name, version, requires=(), python="", tag="py3-none-any"):
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    lines += [f"Requires-Dist: {word}" for word in requires]
    lines += [f"Requires-Python: {python}"] if python else []
    folder = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(f"index/{name}-{version}-{tag}.whl", "w") as archive:
        archive.writestr(f"{name}/__init__.py", f"__version__ = '{version}'\n")
        archive.writestr(f"{folder}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(f"{folder}/WHEEL", f"Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{folder}/RECORD", "")


def source(name, version, setup):
    with tarfile.open(f"index/{name}-{version}.tar.gz", "w:gz") as archive:
        for path, text in (("setup.py", setup), ("PKG-INFO", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")):
            info = tarfile.TarInfo(f"{name}-{version}/{path}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))


Path("index").mkdir(exist_ok=True)
wheel("numlib", "1.26.4")
wheel("numlib", "2.1.0")
wheel("fastops", "0.4.0", ["numlib<2"])
wheel("trainkit", "3.0", ["numlib>=2", "fastops"])
wheel("oldkit", "1.0", python="<3.8")
wheel("gpukit", "1.0", tag="cp38-cp38-manylinux2014_x86_64")
wheel("needy", "1.0", ["missing-backend>=4"])
wheel("looped", "2.0", ["looped-core==2.1"])
wheel("looped_core", "2.1", ["looped==1.0"])
source("ckit", "1.0", "from setuptools import setup, Extension\nsetup(name='ckit', version='1.0', ext_modules=[Extension('ckit', ['ckit.c'])])\n")
source("cudakit", "1.0", "import os\nhome = os.environ['CUDA_HOME']\nfrom setuptools import setup\nsetup(name='cudakit', version='1.0')\n")
source("torchkit", "1.0", "import torch\nfrom setuptools import setup\nsetup(name='torchkit', version='1.0')\n")
source("oddkit", "1.0", "from setuptools import setup\nsetup(name='oddkit', version='1.0', install_requires=['numlib >= '])\n")
source("quitkit", "1.0", "import sys\nsys.exit(open('/usr/local/cuda/version.txt').read())\n")
if len(sys.argv) > 1:
    data = Path("index", sys.argv[1]).read_bytes()
    Path("index", sys.argv[1]).write_bytes(data[: len(data) // 2])
