import ray
from cell import Cell

cell = Cell()
ENVS = {
    "pip": {"pip": {"packages": ["fastops==99"], "pip_check": False, "pip_install_options": ["--no-index"]}},
    "folder": {"working_dir": "/mnt/code/train"},
    "zip": {"working_dir": "s3://bucket/code.tar"},
    "module": {"py_modules": ["./not_here"]},
    "variable": {"env_vars": {"LR": 0.1}},
    "conda": {"conda": "train-env"},
    "key": {"pips": ["x"]},
    "http": {"working_dir": "https://127.0.0.1:9/code.zip"},
    "requirements": {"pip": "requirements-ray.txt"},
}


@ray.remote(runtime_env=ENVS[cell.how])
def work():
    return 1


print(ray.get(work.remote(), timeout=60))
