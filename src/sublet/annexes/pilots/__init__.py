"""HTCondor's side of annexes: the access point, its tokens and tools, and the program that a lease starts."""
