from loop import Accelerator, args, parts

Accelerator(cpu=True)
