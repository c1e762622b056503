"""The rules of systems: queues, sizes, what a centre would refuse, and what an allocation pays."""
