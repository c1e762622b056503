"""What travels over HTTP about access, accounts, pledges, audit and usage."""
