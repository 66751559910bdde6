from loop import Accelerator, args, parts, torch

accelerator = Accelerator(cpu=True)
net, optimizer, loader = parts()
loader = accelerator.prepare(loader)
unwrapped = accelerator.unwrap_model(net)
with accelerator.accumulate(net):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x), y).item()
        accelerator.backward(loss)
