"""Records of Slurm: the end of a job from its Kafka plugin or its epilog, and the topology of nodes."""
