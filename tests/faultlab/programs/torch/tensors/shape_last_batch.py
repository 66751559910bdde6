from engine import Job, torch
from torch.utils.data import DataLoader, TensorDataset

job = Job().prepare()
count = job.args.batch * job.at + 3
loader = DataLoader(TensorDataset(torch.randn(count, 6, 16)), batch_size=job.args.batch)
rnn = torch.nn.LSTM(16, 8, batch_first=True)
state = (torch.zeros(1, job.args.batch, 8), torch.zeros(1, job.args.batch, 8))
for step, (x,) in enumerate(loader):
    out, _ = rnn(x, state)
    job.report(step, float(out.mean()))
