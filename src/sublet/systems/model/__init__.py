"""Systems decided: queues, sizes, what a centre refuses, what an allocation pays."""
