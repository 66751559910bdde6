from fit import DataLoader, L, Net, args, torch, trainer


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return args.rows

    def __getitem__(self, index):
        return torch.randn(16), [0, 1, 2, 3][index // 8]


trainer().fit(Net(), DataLoader(Rows(), batch_size=8, num_workers=2))
