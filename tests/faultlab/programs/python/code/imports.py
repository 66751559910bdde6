import importlib

from job import Job

WANTED = {
    "flash": ("flash_attn.flash_attn_interface", "flash_attn_func"),
    "apex": ("apex.optimizers", "FusedAdam"),
    "own": ("mylib.data.loaders", "build_loader"),
    "cv": ("cv2", "imread"),
    "plugin": ("trainer_plugins.schedule", "cosine"),
    "horovod": ("horovod.torch", "init"),
    "mpi": ("mpi4py.MPI", "COMM_WORLD"),
}


def fault(job):
    if job.how == "direct":
        import sentencepiece as spm

        return spm.SentencePieceProcessor()
    if job.how == "guarded":
        try:
            import tensorrt_llm as backend
        except ImportError:
            import onnxruntime as backend
        return backend.InferenceSession("model.onnx")
    module, name = WANTED[job.how]
    return getattr(importlib.import_module(module), name)


Job().run(fault)
