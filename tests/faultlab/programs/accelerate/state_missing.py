from loop import Accelerator, args, parts

accelerator = Accelerator(cpu=True)
net, optimizer, loader = accelerator.prepare(*parts())
accelerator.load_state("checkpoints/step_1000" if args.how == "" else f"/mnt/ckpt/{args.how}")
