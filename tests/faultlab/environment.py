"""The interpreters that programs run in: venvs outside the checkout, built from recipes on demand.

They are in $FAULTLAB_HOME or ~/.cache/faultline-faultlab, one folder for each name. "" is the running interpreter.
Packages without a wheel are compiled into their environment, see native.py.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.faultlab import native

# name -> arguments of pip install. Lab interpreters are not part of the product or of CI runs.
RECIPES: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch", "numpy", "transformers", "accelerate", "lightning", "deepspeed"),
    "jax": ("jax", "flax", "optax", "orbax-checkpoint"),
    "data": (
        "numpy",
        "pandas",
        "scikit-learn",
        "pyarrow",
        "requests",
        "boto3",
        "aiohttp",
        "httpx",
        "fsspec",
        "huggingface_hub",
        "wandb",
        "mlflow-skinny",
        "tqdm",
        "pyyaml",
        "hydra-core",
        "h5py",
        "pillow",
    ),
    "libraries": (  # of the failures for measuring only: tests/unseen_failures
        "polars",
        "duckdb",
        "lxml",
        "pydantic",
        "networkx",
        "sympy",
        "numba",
        "scipy",
        "xgboost",
        "lightgbm",
        "scikit-image",
        "opencv-python-headless",
        "sqlalchemy",
        "psycopg[binary]",
        "dask",
        "distributed",
        "fastapi",
        "uvicorn",
        "click",
        "marshmallow",
        "jsonschema",
        "celery",
        "redis",
        "pymongo",
        "paramiko",
        "grpcio",
        "tornado",
        "flask",
        "gunicorn",
        "jinja2",
        "omegaconf",
        "xarray",
        "zarr",
        "nltk",
        "gensim",
        "statsmodels",
        "optuna",
        "cvxpy",
        "luigi",
        "prefect",
        "joblib",
        "pyzmq",
        "openpyxl",
        "msgpack",
        "kafka-python",
        "minio",
        "ldap3",
        "pika",
        "dulwich",
        "cython",
        "pyyaml",
        "paho-mqtt",
        "elasticsearch",
        "gymnasium",
        "onnx",
        "onnxruntime",
        "tokenizers",
        "sentencepiece",
        "pandas",
        "scikit-learn",
        "numpy",
    ),
    "tensorflow": ("tensorflow",),
    "ray": ("ray[train]", "pandas"),
    "mpi": ("mpi4py", "numpy"),
    "horovod": ("setuptools<81", "wheel", "cffi", "cloudpickle", "psutil", "pyyaml", "packaging"),
}


class NoEnvironment(RuntimeError):
    """The named interpreter does not exist, and building it was not requested."""


def root() -> Path:
    """Return the folder of the lab's interpreters."""
    given = os.environ.get("FAULTLAB_HOME")
    return Path(given) if given else Path.home() / ".cache" / "faultline-faultlab"


def python(name: str) -> Path:
    """Return the interpreter of an environment; "" is the running one, "system" the first python3 of PATH.

    Raises:
        NoEnvironment: the environment is not built.
    """
    if name == "":
        return Path(sys.executable)
    if name == "system":
        return Path("/usr/bin/python3")
    found = root() / name / "bin" / "python"
    if not found.exists():
        raise NoEnvironment(f"environment {name}: {found} is not there; `python -m tests.faultlab build {name}`")
    return found


def folder(name: str) -> Path | None:
    """Return the folder of a named environment; None for interpreters that are not the lab's."""
    return root() / name if name in RECIPES else None


def below(name: str) -> Path | None:
    """Return the folder of the environment whose packages a named environment also uses; None for most."""
    recipe = native.recipes().get(name)
    return root() / recipe.below if recipe else None


def build(name: str) -> Path:
    """Create the venv of a recipe and the environment it builds on; return its interpreter.

    Raises:
        NoEnvironment: there is no such recipe.
        native.NativeError: a source archive does not match its recipe.
        subprocess.CalledProcessError: pip could not install or compile a package.
    """
    if name not in RECIPES:
        raise NoEnvironment(f"environment {name}: expected one of {', '.join(RECIPES)}")
    where = root() / name
    if not (where / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(where)], check=True)
        subprocess.run([str(where / "bin" / "pip"), "install", "--quiet", *RECIPES[name]], check=True)
        if (recipe := native.recipes().get(name)) is not None:
            (packages,) = build(recipe.below).parents[1].glob("lib/python*/site-packages")
            native.see(where / "bin" / "python", packages)
            native.build(where / "bin" / "python", recipe)
    return where / "bin" / "python"


def version(name: str, distribution: str) -> str | None:
    """Return the version of a distribution in an environment; None if it has none."""
    if not distribution:
        return None
    code = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    done = subprocess.run([str(python(name)), "-c", code, distribution], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None
