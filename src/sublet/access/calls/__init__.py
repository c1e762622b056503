"""The calls of the SDK about access, accounts, pledges, audit and usage."""
