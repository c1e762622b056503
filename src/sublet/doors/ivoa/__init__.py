"""The IVOA Execution Broker's wire: its addresses, and its documents of offer sets and sessions."""
