"""An optional second reader: a language model of the site reads failures about which the classifier is in doubt."""
