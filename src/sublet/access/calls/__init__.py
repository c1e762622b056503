"""The SDK's calls about access, accounts, pledges, audit and usage."""
