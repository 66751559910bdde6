from engine import Job, torch

job = Job().prepare()
device = torch.device("cuda", 0)
if job.how == "tensor":
    x = torch.zeros(4, device=device)
elif job.how == "current":
    print(torch.cuda.current_device())
elif job.how == "name":
    print(torch.cuda.get_device_name(0))
elif job.how == "pin":
    torch.cuda.set_device(0)
else:
    job.model.to(device)
