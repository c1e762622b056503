"""Pages: annexes, and the questions before a lease ends."""
