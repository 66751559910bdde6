from tune import Tokens, Trainer, args, model, options

if args.how == "adamw":
    from transformers import AdamW
elif args.how == "tokenizer":
    Trainer(model=model(), args=options(), train_dataset=Tokens(), tokenizer_class=None)
elif args.how == "tf":
    from transformers import TFAutoModelForSequenceClassification

    TFAutoModelForSequenceClassification.from_config(model().config)
else:
    from transformers.modeling_utils import top_k_top_p_filtering
