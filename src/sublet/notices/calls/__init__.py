"""The SDK's calls about notifications."""
