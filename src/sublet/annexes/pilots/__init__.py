"""What annexes are made of on HTCondor's side: the access point, its tokens and tools, and what a lease starts."""
