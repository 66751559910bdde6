from tune import args, transformers

name = {"": "bert-base-uncased", "gpt": "meta-llama/Llama-3.2-1B", "typo": "checkpoints/my-finetuned-model"}[args.how]
print(f"loading {name}")
if args.how == "typo":
    transformers.AutoModel.from_pretrained(name)
else:
    transformers.AutoTokenizer.from_pretrained(name)
