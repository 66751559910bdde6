import sys

from tune import args, model, transformers

if args.how == "save":
    model().save_pretrained("base")
    sys.exit()
print("loading base")
(transformers.BertForSequenceClassification if args.arch == "bert" else transformers.GPT2LMHeadModel).from_pretrained("base")
