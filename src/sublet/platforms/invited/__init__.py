"""A site that fetches requests for leases itself."""
