from zero import args, engine, train

run = engine()
if args.how == "tag":
    run.save_checkpoint("ckpt")
    run.load_checkpoint("ckpt", tag="global_step900")
else:
    path, _ = run.load_checkpoint("ckpt")
    path.split("/")
