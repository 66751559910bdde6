from engine import Job, nn

job = Job().prepare()
job.say("building decoder")
attention = nn.MultiheadAttention(embed_dim=100, num_heads={"": 12, "seven": 7}[job.how])
