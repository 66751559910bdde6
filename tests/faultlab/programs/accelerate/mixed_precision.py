from loop import Accelerator, args, parts

Accelerator(mixed_precision=args.how)
