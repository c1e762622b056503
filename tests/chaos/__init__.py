"""`make chaos`: clients work while the service, its database, its disk and its cluster are broken under them.

`plan.py` makes the whole plan out of a seed; `storm.py` carries it out; `checks.py` judges what was gathered.
"""
