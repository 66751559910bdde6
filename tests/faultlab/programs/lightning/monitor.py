from fit import L, Net, args, data, torch, trainer

stop = L.pytorch.callbacks.EarlyStopping("val_loss", patience=1)
trainer(callbacks=[stop]).fit(Net(), data())
