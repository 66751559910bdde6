from engine import Job, nn, torch

job = Job().prepare()
makers = {
    "linear": lambda: nn.Linear(8, 8, use_bias=True),
    "adam": lambda: torch.optim.Adam(job.model.parameters(), learning_rate=0.1),
    "forward": lambda: job.model(job.make(2)[0], attention_mask=None),
    "plateau": lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(job.optimizer, verbose=True),
}
job.say("setting up")
made = makers[job.how]()
