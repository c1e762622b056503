"""Another Execution Broker as a platform: its offers are passed on, and its sessions are followed there."""
