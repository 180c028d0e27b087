"""Drift: how far new documents differ from earlier ones; `measures.py` lists the measures."""
