from tune import args, transformers

print("loading tokenizer")
transformers.AutoConfig.from_pretrained("acme/base-encoder", revision="main")
