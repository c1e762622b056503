"""The use cases: one file per noun, joined in `service.Service`; `reconcile.py` is the loop."""
