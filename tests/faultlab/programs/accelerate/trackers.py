from loop import Accelerator, args, parts

accelerator = Accelerator(cpu=True, log_with=args.how)
accelerator.init_trackers("experiment")
