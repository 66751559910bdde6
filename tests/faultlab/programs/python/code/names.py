from job import Job

total = 0


def count(batch):
    for _ in batch:
        total += 1
    return total


def fault(job):
    match job.how:
        case "global":
            return evaluate(job.weights)
        case "late":
            if job.at < 0:
                metric = 0.3
            return metric
        case "augmented":
            return count([1, 2])
        case "import":
            return os.path.join("a", "b")
        case "torch":
            return torch.cuda.is_available()
        case "closure":
            def inner():
                return scale * 2

            if job.at < 0:
                scale = 3
            return inner()
        case "except":
            try:
                return 3 / 1
            finally:
                job.say(f"best {best_loss}")
        case "delete":
            model = job.weights
            del model
            return model.shape
        case "self":
            return self.weights


Job().run(fault)
