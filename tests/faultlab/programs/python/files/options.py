import argparse
import sys

from job import Job


def path(text):
    if not text.startswith("/"):
        raise argparse.ArgumentTypeError(f"{text!r} is not absolute")
    return text


def fault(job):
    parser = argparse.ArgumentParser(description="Train a model.")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--precision", choices=["fp32", "fp16", "bf16"], default="bf16")
    parser.add_argument("--data-dir", type=path, required=job.how == "required")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--resume", action="store_true")
    group.add_argument("--from-scratch", action="store_true")
    sub = parser.add_subparsers(dest="command") if job.how == "command" else None
    if sub:
        sub.add_parser("fit")
        sub.add_parser("evaluate")
    return parser.parse_args([word for word in sys.argv[sys.argv.index("--") + 1 :]] if "--" in sys.argv else [])


Job().run(fault)
