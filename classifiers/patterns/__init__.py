"""Fast search in text: literals by one automaton, and regular expressions without their large upper bounds."""
