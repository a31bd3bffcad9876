"""Health of a run: the rules of the guide, the diagnoses, and the judge that applies them."""
