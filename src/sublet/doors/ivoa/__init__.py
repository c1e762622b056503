"""The IVOA Execution Broker's protocol: its endpoints, and its documents of offer sets and sessions."""
